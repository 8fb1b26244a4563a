"""A program that answers as podman and docker do to the words that the agent uses; its containers are plain processes.

A container engine cannot run in every place where tests do. What it keeps, and how it is to fail, are files in the
directory that ENGINE_STATE names: `away` (it answers nothing but errors), `hang` (it does not answer).
"""

SCRIPT = r"""#!/usr/bin/env python3
import json, os, signal, subprocess, sys, time
state = os.path.dirname(os.path.realpath(sys.argv[0]))
words = sys.argv[1:]
with open(f"{state}/calls", "a") as stream:
    stream.write(" ".join(words) + "\n")
if os.path.exists(f"{state}/hang"):
    time.sleep(60)
if os.path.exists(f"{state}/away"):
    sys.exit("Cannot connect to the engine: connection refused")
kept = f"{state}/container.json"
here = json.load(open(kept)) if os.path.exists(kept) else None

def alive():
    try:
        return open(f"/proc/{here['pid']}/stat").read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

def option(name):
    return words[words.index(name) + 1]

verb = words[0]
if verb == "ps":
    if here and option("--filter") == f"name=^/?{here['name']}$":
        print(here["id"])
elif verb == "inspect":
    status = ("paused" if here.get("paused") else "running") if alive() else "exited"
    print(f"{status}|{here['pid'] if alive() else 0}|{0 if alive() else 137}|{here['label']}")
elif verb == "image":
    sys.exit(0 if os.path.exists(f"{state}/image") else "no such image")
elif verb == "pull":
    open(f"{state}/image", "w")
elif verb == "run":
    if here:
        sys.exit("the name is in use")
    command = words[words.index("shop:1") + 1:] or ["sleep", "1031"]
    child = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    label = option("--label").partition("=")[2]
    json.dump({"id": "ab" * 32, "name": option("--name"), "label": label, "pid": child.pid}, open(kept, "w"))
    print("ab" * 32)
elif verb in ("stop", "rm"):
    if alive():
        os.kill(here["pid"], signal.SIGKILL if verb == "rm" else signal.SIGTERM)
        end = time.monotonic() + (float(option("-t")) if verb == "stop" else 5)
        while alive():
            if time.monotonic() > end:
                os.kill(here["pid"], signal.SIGKILL)
            time.sleep(0.01)
    if verb == "rm" and here:
        os.unlink(kept)
elif verb == "exec":
    sys.exit(subprocess.run(words[2:], check=False).returncode)
elif verb == "logs":
    print("the shop cannot open its till")
else:
    sys.exit(f"unknown word {verb}")
"""

SYSTEMCTL = r"""#!/usr/bin/env python3
import os, sys
state = os.path.dirname(os.path.realpath(sys.argv[0]))
words = sys.argv[1:]
unit = f"{state}/unit"
if words[0] == "show":
    known = os.path.exists(f"{state}/known")
    active = open(unit).read() if os.path.exists(unit) else "inactive"
    restart = "on-failure" if os.path.exists(f"{state}/restarts") else "no"
    print(f"LoadState={'loaded' if known else 'not-found'}\nActiveState={active}\nRestart={restart}\nResult=success")
elif words[0] == "start":
    open(unit, "w").write("active")
elif words[0] == "stop":
    open(unit, "w").write("inactive")
"""
