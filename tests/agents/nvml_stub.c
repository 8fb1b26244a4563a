/* A libnvidia-ml.so.1 for machines without a GPU: what it answers stands in a file, read again at every call.
 *
 * Build: cc -shared -fPIC -O1 -Wall -Wextra -Werror -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 nvml_stub.c
 * Use:   NVML_STUB=FILE LD_LIBRARY_PATH=DIRECTORY PROGRAM; without NVML_STUB the file is `nvml_stub` beside the library
 *
 * Lines of the file (the last one that fits wins, one for a device before one for all):
 *   KEY=VALUE       for every device        gINDEX.KEY=VALUE   for one device
 *   KEY=!CODE       the call returns that NVML error
 *   KEY=@hang       the call never returns  KEY=@hard          nor does it let SIGTERM end its process
 *   any=...         for every call about the device, its handle included
 * Keys are named where they are used. NVML's prototypes and structures are those of NVIDIA's public documentation.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7 };
enum { DEVICES_MAX = 64, LINKS_MAX = 18, FILE_MAX = 32768, VALUE_MAX = 128 };

typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct { int index; } Device;

static Device devices[DEVICES_MAX];
static int is_initialized;

static void read_file(char *text) {
    char beside[4096];
    Dl_info library;
    const char *path = getenv("NVML_STUB");
    if (!path && dladdr(devices, &library)) {
        const char *slash = strrchr(library.dli_fname, '/');
        int length = slash ? (int)(slash - library.dli_fname + 1) : 0;
        snprintf(beside, sizeof beside, "%.*snvml_stub", length, library.dli_fname);
        path = beside;
    }
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t size = file < 0 ? 0 : read(file, text, FILE_MAX - 1);
    if (file >= 0) close(file);
    text[size < 0 ? 0 : size] = 0;
}

/* Copy the value of the last line `name=`; return whether there is one. */
static int find(const char *text, const char *name, char *value) {
    size_t length = strlen(name);
    int is_found = 0;
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, length) || line[length] != '=') continue;
        size_t size = strcspn(line + length + 1, "\n");
        if (size >= VALUE_MAX) size = VALUE_MAX - 1;
        memcpy(value, line + length + 1, size);
        value[size] = 0;
        is_found = 1;
    }
    return is_found;
}

static int lookup(const char *text, const Device *device, const char *key, char *value) {
    char name[64];
    if (device) {
        snprintf(name, sizeof name, "g%d.%s", device->index, key);
        if (find(text, name, value)) return 1;
    }
    return find(text, key, value);
}

/* Do what a value orders beside being a value; return NVML's code. */
static int obey(const char *value) {
    if (value[0] == '!') return atoi(value + 1);
    if (!strcmp(value, "@hard")) {
        signal(SIGTERM, SIG_IGN);
        value = "@hang";
    }
    if (!strcmp(value, "@hang")) for (;;) pause();
    return SUCCESS;
}

/* Answer a call: copy the value of a key, or its default; without a default the call is not supported. */
static int answer(const Device *device, const char *key, const char *fallback, char *value) {
    char text[FILE_MAX];
    int code;
    read_file(text);
    if (!is_initialized && strcmp(key, "init")) return UNINITIALIZED;
    if (device && lookup(text, device, "any", value) && (code = obey(value))) return code;
    if (!lookup(text, device, key, value)) {
        if (!fallback) return NOT_SUPPORTED;
        snprintf(value, VALUE_MAX, "%s", fallback);
    }
    return obey(value);
}

static int number(const Device *device, const char *key, const char *fallback, u64 *out) {
    char value[VALUE_MAX];
    int code = answer(device, key, fallback, value);
    if (!code) *out = strtoull(value, NULL, 0);
    return code;
}

static int number32(const Device *device, const char *key, const char *fallback, u32 *out) {
    u64 wide;
    int code = number(device, key, fallback, &wide);
    if (!code) *out = (u32)wide;
    return code;
}

static int text(const Device *device, const char *key, const char *fallback, char *out, u32 size) {
    char value[VALUE_MAX];
    int code = answer(device, key, fallback, value);
    if (code) return code;
    if (strlen(value) >= size) return INSUFFICIENT_SIZE;
    strcpy(out, value);
    return SUCCESS;
}

/* The library and the driver: init, gpus, driver */

int nvmlInitWithFlags(u32 flags) {
    u64 ignored;
    int code = number(NULL, "init", "0", &ignored);
    (void)flags;
    for (int i = 0; i < DEVICES_MAX; i++) devices[i].index = i;
    is_initialized = !code;
    return code;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { is_initialized = 0; return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "an error that the stub was set to return"; }
int nvmlSystemGetDriverVersion(char *out, u32 size) { return text(NULL, "driver", "570.86.10", out, size); }
int nvmlDeviceGetCount_v2(u32 *out) { return number32(NULL, "gpus", "1", out); }

/* Identity: handle, uuid, pci */

int nvmlDeviceGetHandleByIndex_v2(u32 index, Device **out) {
    u32 count;
    u64 ignored;
    int code = nvmlDeviceGetCount_v2(&count);
    if (code) return code;
    if (index >= count || index >= DEVICES_MAX) return INVALID_ARGUMENT;
    code = number(&devices[index], "handle", "0", &ignored);
    if (!code) *out = &devices[index];
    return code;
}

int nvmlDeviceGetUUID(Device *device, char *out, u32 size) {
    char fallback[VALUE_MAX];
    snprintf(fallback, sizeof fallback, "GPU-00000000-0000-0000-0000-%012d", device->index);
    return text(device, "uuid", fallback, out, size);
}

int nvmlDeviceGetPciInfo_v3(Device *device, void *out) {
    struct { char legacy[16]; u32 domain, bus, slot, id, subsystem; char bus_id[32]; } *pci = out;
    char fallback[VALUE_MAX];
    snprintf(fallback, sizeof fallback, "00000000:%02X:00.0", 0x1a + device->index);
    memset(pci, 0, sizeof *pci);
    return text(device, "pci", fallback, pci->bus_id, sizeof pci->bus_id);
}

/* What can be measured: one key for each */

#define NUMBER32(function, key, fallback) \
    int function(Device *device, u32 *out) { return number32(device, key, fallback, out); }

NUMBER32(nvmlDeviceGetRetiredPagesPendingStatus, "pages_pending", NULL)
NUMBER32(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", "16")
NUMBER32(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", "16")

int nvmlDeviceGetTemperature(Device *device, u32 sensor, u32 *out) {
    (void)sensor;
    return number32(device, "temperature", "40", out);
}

int nvmlDeviceGetTemperatureThreshold(Device *device, u32 kind, u32 *out) {
    return number32(device, kind == 0 ? "shutdown" : "slowdown", kind == 0 ? "92" : "89", out);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, u64 *out) { return number(device, "reasons", "1", out); }

int nvmlDeviceGetUtilizationRates(Device *device, u32 *out) {
    out[1] = 0;
    return number32(device, "busy", "0", out);
}

int nvmlDeviceGetTotalEccErrors(Device *device, u32 type, u32 counter, u64 *out) {
    static const char *keys[2][2] = {
        {"ecc_corrected", "ecc_corrected_ever"},
        {"ecc_uncorrected", "ecc_uncorrected_ever"},
    };
    return type > 1 || counter > 1 ? INVALID_ARGUMENT : number(device, keys[type][counter], "0", out);
}

int nvmlDeviceGetSramEccErrorStatus(Device *device, void *out) {
    struct { u32 version; u64 counts[11]; u32 is_exceeded; } *status = out;
    return number32(device, "sram_exceeded", "0", &status->is_exceeded);
}

int nvmlDeviceGetRemappedRows(Device *device, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
    *corrected = *uncorrected = 0;
    int code = number32(device, "remap_pending", "0", pending);
    return code ? code : number32(device, "remap_failed", "0", failed);
}

int nvmlDeviceGetNvLinkState(Device *device, u32 link, u32 *out) {
    char key[VALUE_MAX];
    if (link >= LINKS_MAX) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "link%u", link);
    return number32(device, key, "1", out);
}

int nvmlDeviceGetGpuFabricInfoV(Device *device, void *out) {
    struct {
        u32 version;
        unsigned char cluster[16];
        int status;
        u32 clique;
        unsigned char state;
        u32 health;
    } *info = out;
    u32 state = 0;
    int code = number32(device, "fabric", NULL, &state);
    info->state = (unsigned char)state;
    return code;
}

/* Field values: fieldNUMBER; 230 is the recovery action */

int nvmlDeviceGetFieldValues(Device *device, int count, void *out) {
    struct {
        u32 id, scope;
        long long timestamp, latency;
        u32 type, code;
        union { u64 number; double real; } value;
    } *field = out;
    char key[VALUE_MAX];
    u64 ignored;
    int code = number(device, "fields", "0", &ignored);
    for (int i = 0; !code && i < count; i++) {
        snprintf(key, sizeof key, "field%u", field[i].id);
        field[i].type = 3;
        field[i].value.number = 0;
        field[i].code = (u32)number(device, key, field[i].id == 230 ? "0" : NULL, &field[i].value.number);
    }
    return code;
}
