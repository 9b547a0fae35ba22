#!/usr/bin/env python3
"""Prints the runtime's configuration (OCI runtime specification) that starts an image as its own settings say, with a
read-only root and no privileges, on the network of this machine.

    tools/image_bundle.py IMAGE.json ROOT PORT      IMAGE.json: buildah inspect --type image
"""
import json
import sys

image, root, port = sys.argv[1:]
with open(image) as file:
    config = json.load(file)["OCIv1"]["config"]
user, group = (int(number) for number in config["User"].split(":"))
environment = [line for line in config["Env"] if not line.startswith("SHOAL_LISTEN=")] + [f"SHOAL_LISTEN=127.0.0.1:{port}"]


def folder(path, size):
    return {"destination": path, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", f"size={size}", "mode=1777"]}


print(json.dumps({
    "ociVersion": "1.0.2",
    "process": {
        "args": config["Entrypoint"] + config["Cmd"],
        "env": environment,
        "cwd": config["WorkingDir"],
        "user": {"uid": user, "gid": group},
        "capabilities": {name: [] for name in ("bounding", "effective", "permitted")},
        "noNewPrivileges": True,
    },
    "root": {"path": root, "readonly": True},
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
        folder("/tmp", "64m"),
        folder("/data", "256m"),
    ],
    "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
}, indent=1))
