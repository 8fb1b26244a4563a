/* A libnvidia-ml.so.1 for machines without a GPU: what it answers stands in a file, read again at every call.
 *
 * Build: cc -shared -fPIC -O1 -Wall -Wextra -Werror -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 nvml_stub.c
 * Use:   NVML_STUB=FILE LD_LIBRARY_PATH=DIRECTORY PROGRAM; without NVML_STUB the file is `nvml_stub` beside the library
 *
 * Lines of the file (the last one that fits wins, one for a device before one for all):
 *   KEY=VALUE       for every device        gINDEX.KEY=VALUE   for one device
 *   KEY=!CODE       the call returns that NVML error
 *   KEY=@hang       the call never returns  KEY=@hard          nor does it let SIGTERM end its process
 *   KEY=~MS~VALUE   the call takes so many milliseconds
 *   KEY=@rate:N     a counter that rises by N a second
 *   any=...         for every call about the device, its handle included
 *   gINDEX.mNUMBER.KEY=VALUE   for one MIG instance
 * Keys are named where they are used. NVML's prototypes and structures are those of NVIDIA's public documentation.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, TIMEOUT = 10 };
enum { DEVICES_MAX = 64, LINKS_MAX = 18, FILE_MAX = 32768, VALUE_MAX = 128, INSTANCES_MAX = 8 };

typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct { int index, instance; } Device; /* instance: -1 of a whole device */

static Device devices[DEVICES_MAX], instances[DEVICES_MAX][INSTANCES_MAX];
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
    if (device && device->instance >= 0) {
        snprintf(name, sizeof name, "g%d.m%d.%s", device->index, device->instance, key);
        return find(text, name, value);
    }
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
    if (value[0] == '~') {
        char *rest;
        usleep((useconds_t)strtoul(value + 1, &rest, 10) * 1000);
        memmove(value, rest + 1, strlen(rest + 1) + 1);
    }
    return obey(value);
}

static int number(const Device *device, const char *key, const char *fallback, u64 *out) {
    char value[VALUE_MAX];
    int code = answer(device, key, fallback, value);
    if (!code && !strncmp(value, "@rate:", 6)) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        *out = (u64)(now.tv_sec * 1000 + now.tv_nsec / 1000000) * strtoull(value + 6, NULL, 0) / 1000;
    } else if (!code) *out = strtoull(value, NULL, 0);
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
    for (int i = 0; i < DEVICES_MAX; i++) {
        devices[i] = (Device){i, -1};
        for (int j = 0; j < INSTANCES_MAX; j++) instances[i][j] = (Device){i, j};
    }
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
    if (device->instance < 0) snprintf(fallback, sizeof fallback, "GPU-00000000-0000-0000-0000-%012d", device->index);
    else snprintf(fallback, sizeof fallback, "MIG-%08d-0000-0000-0000-%012d", device->index, device->instance);
    return text(device, "uuid", fallback, out, size);
}

int nvmlDeviceGetName(Device *device, char *out, u32 size) {
    char value[VALUE_MAX], profiles[VALUE_MAX];
    if (device->instance < 0) return text(device, "name", "NVIDIA H200", out, size);
    int code = answer(&devices[device->index], "instances", "", profiles);
    char *profile = strtok(profiles, ",");
    for (int i = 0; profile && i < device->instance; i++) profile = strtok(NULL, ",");
    snprintf(value, sizeof value, "NVIDIA H200 MIG %s", profile ? profile : "?");
    return code ? code : text(device, "name", value, out, size);
}

int nvmlDeviceGetMinorNumber(Device *device, u32 *out) {
    char fallback[VALUE_MAX];
    snprintf(fallback, sizeof fallback, "%d", device->index);
    return number32(device, "minor", fallback, out);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device **out) {
    char own[VALUE_MAX];
    u32 count;
    int code = nvmlDeviceGetCount_v2(&count);
    for (u32 i = 0; !code && i < count && i < DEVICES_MAX; i++)
        for (int j = -1; j < INSTANCES_MAX; j++) {
            Device *device = j < 0 ? &devices[i] : &instances[i][j];
            if (nvmlDeviceGetUUID(device, own, sizeof own) || strcmp(own, uuid)) continue;
            *out = device;
            return SUCCESS;
        }
    return code ? code : NOT_FOUND;
}

int nvmlDeviceGetPciInfo_v3(Device *device, void *out) {
    struct { char legacy[16]; u32 domain, bus, slot, id, subsystem; char bus_id[32]; } *pci = out;
    char fallback[VALUE_MAX];
    snprintf(fallback, sizeof fallback, "00000000:%02X:00.0", 0x1a + device->index);
    memset(pci, 0, sizeof *pci);
    return text(device, "pci", fallback, pci->bus_id, sizeof pci->bus_id);
}

/* Partitions: mig, mig_pending; instances=PROFILE,PROFILE */

int nvmlDeviceGetMigMode(Device *device, u32 *current, u32 *pending) {
    char same[VALUE_MAX];
    int code = number32(device, "mig", "0", current);
    snprintf(same, sizeof same, "%u", code ? 0 : *current);
    return code ? code : number32(device, "mig_pending", same, pending);
}

int nvmlDeviceGetMaxMigDeviceCount(Device *device, u32 *out) { return number32(device, "mig_max", "7", out); }

int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, u32 index, Device **out) {
    char profiles[VALUE_MAX];
    u32 count = 0;
    int code = answer(device, "instances", "", profiles);
    for (char *each = code ? NULL : strtok(profiles, ","); each; each = strtok(NULL, ",")) count++;
    if (code || index >= count || index >= INSTANCES_MAX) return code ? code : NOT_FOUND;
    *out = &instances[device->index][index];
    return SUCCESS;
}

/* Who uses it: memory_total, memory_used, memory_reserved (MiB), processes=PID,PID:MIB; group: those with one reach others */

int nvmlDeviceGetMemoryInfo_v2(Device *device, void *out) {
    struct { u32 version; u64 total, reserved, free, used; } *memory = out;
    int code = number(device, "memory_total", device->instance < 0 ? "143771" : "16384", &memory->total);
    if (!code) code = number(device, "memory_used", "0", &memory->used);
    if (!code) code = number(device, "memory_reserved", "615", &memory->reserved);
    memory->total <<= 20;
    memory->used <<= 20;
    memory->reserved <<= 20;
    memory->free = memory->total - memory->reserved - memory->used;
    return code;
}

typedef struct { u32 pid; u64 memory; u32 instance, compute_instance; } Process;

static int processes(Device *device, const char *key, u32 *count, Process *out) {
    char value[VALUE_MAX];
    u32 room = *count;
    int code = answer(device, key, "", value);
    *count = 0;
    if (code) return code;
    for (char *each = strtok(value, ","); each; each = strtok(NULL, ",")) {
        if (out && *count < room) {
            char *mib = strchr(each, ':');
            out[*count] = (Process){(u32)atoi(each), mib ? strtoull(mib + 1, NULL, 0) << 20 : 1 << 30, ~0u, ~0u};
        }
        ++*count;
    }
    return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

#define PROCESSES(function, key) \
    int function(Device *device, u32 *count, Process *out) { return processes(device, key, count, out); }

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "processes")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

int nvmlDeviceGetP2PStatus(Device *one, Device *other, u32 kind, u32 *out) {
    u64 first, second;
    int code = number(one, "group", "1", &first);
    if (!code) code = number(other, "group", "1", &second);
    if (code) return code;
    *out = kind == 2 && first && first == second ? 0 : 1;
    return SUCCESS;
}

/* Events: event=SEQUENCE:INDEX:XID; an event comes once, when its sequence is higher than the last one's */

static u32 last_event;

int nvmlEventSetCreate(void **out) { *out = &last_event; return SUCCESS; }
int nvmlEventSetFree(void *set) { (void)set; return SUCCESS; }
int nvmlDeviceGetSupportedEventTypes(Device *device, u64 *out) { return number(device, "events", "0xff9f", out); }

int nvmlDeviceRegisterEvents(Device *device, u64 kinds, void *set) {
    u64 supported;
    int code = nvmlDeviceGetSupportedEventTypes(device, &supported);
    (void)set;
    return code ? code : kinds & ~supported ? NOT_SUPPORTED : SUCCESS;
}

int nvmlEventSetWait_v2(void *set, void *out, u32 timeout_ms) {
    struct { Device *device; u64 kind, data; u32 instance, compute_instance; } *event = out;
    (void)set;
    for (u32 waited = 0; waited <= timeout_ms; waited += 10) {
        char value[VALUE_MAX];
        u32 sequence, index, xid;
        int code = answer(NULL, "event", "", value);
        if (code) return code;
        if (sscanf(value, "%u:%u:%u", &sequence, &index, &xid) == 3 && sequence > last_event && index < DEVICES_MAX) {
            last_event = sequence;
            event->device = &devices[index];
            event->kind = 8;
            event->data = xid;
            return SUCCESS;
        }
        usleep(10000);
    }
    return TIMEOUT;
}

/* What can be measured: one key for each */

#define NUMBER32(function, key, fallback) \
    int function(Device *device, u32 *out) { return number32(device, key, fallback, out); }

NUMBER32(nvmlDeviceGetRetiredPagesPendingStatus, "pages_pending", NULL)
NUMBER32(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", "16")
NUMBER32(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", "16")
NUMBER32(nvmlDeviceGetComputeMode, "compute_mode", "0")
NUMBER32(nvmlDeviceGetPcieReplayCounter, "replays", "0")
NUMBER32(nvmlDeviceGetPersistenceMode, "persistence", "1")

int nvmlDeviceGetVbiosVersion(Device *device, char *out, u32 size) {
    return text(device, "vbios", "96.00.A5.00.01", out, size);
}

int nvmlDeviceGetClockInfo(Device *device, u32 kind, u32 *out) {
    (void)kind;
    return number32(device, "clock", "1980", out);
}

int nvmlDeviceGetRowRemapperHistogram(Device *device, void *out) {
    struct { u32 max, high, partial, low, none; } *banks = out;
    banks->max = 640;
    banks->high = banks->partial = 0;
    int code = number32(device, "banks_low", "0", &banks->low);
    return code ? code : number32(device, "banks_none", "0", &banks->none);
}

int nvmlDeviceGetEccMode(Device *device, u32 *current, u32 *pending) {
    char same[VALUE_MAX];
    int code = number32(device, "ecc", "1", current);
    snprintf(same, sizeof same, "%u", code ? 0 : *current);
    return code ? code : number32(device, "ecc_wanted", same, pending);
}

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
