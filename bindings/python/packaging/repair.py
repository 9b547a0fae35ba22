"""Makes a staged package independent of the machine that built it.

Every shared library that is not the C or C++ runtime's is copied into native/lib under a name of its own, so that it
never meets another version of itself in one process, and is found through an RPATH relative to the file that needs
it. The licence of each Debian package that a copy comes from goes along, and those of what is compiled in.
"""
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPILED_IN = HERE.parents[2] / "tools" / "licences.sh"
# Part of every Linux with a C++ program on it; their versions are what the platform tag is about.
RUNTIME = re.compile(r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux-x86-64)\.so\.\d+$")
# libespeak-ng can play; the phonemizer never does. The real one brings a sound server's libraries.
SILENT = "libpcaudio.so.0"
PREFIX = "shoal-"  # of the copies' names


def output_of(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def needed(file):
    return output_of("patchelf", "--print-needed", file).split()


def places(file):
    """soname -> path of everything that FILE needs, directly or not."""
    lines = output_of("ldd", file)
    missing = re.findall(r"(\S+) => not found", lines)
    if missing:
        raise SystemExit(f"{file}: {', '.join(missing)} not found")
    return dict(re.findall(r"(\S+) => (/\S+)", lines))


def make_silent(target):
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-Wl,-soname,{target.name}", "-o", str(target),
                    str(HERE / "silent_pcaudio.c")], check=True)


def copy_libraries(files, folder):
    """Copies what FILES need into FOLDER, and what that needs. Returns soname -> original path (None: made here)."""
    copied = {}
    waiting = [(file, places(file)) for file in files]
    while waiting:
        file, found = waiting.pop()
        for soname in needed(file):
            if RUNTIME.match(soname) or soname in copied:
                continue
            target = folder / (PREFIX + soname)
            if soname == SILENT:
                copied[soname] = None
                make_silent(target)
                continue
            copied[soname] = Path(found[soname]).resolve()
            shutil.copyfile(copied[soname], target)
            target.chmod(0o755)
            waiting.append((target, found))
    return copied


def point_at_copies(file, copied, rpath):
    """One change at a time: patchelf 0.14 confuses the names of several."""
    for soname in needed(file):
        if soname in copied:
            output_of("patchelf", "--replace-needed", soname, PREFIX + soname, file)
    if file.name.startswith(PREFIX):
        output_of("patchelf", "--set-soname", file.name, file)
    output_of("patchelf", "--set-rpath", rpath, file)


def copy_licences(copied, folder):
    """The copyright file of each Debian package, and which version the copies are."""
    folder.mkdir(parents=True)
    lines = []
    for soname, path in sorted(copied.items()):
        if path is None:
            lines.append(f"{PREFIX}{soname}: silent_pcaudio.c of Shoal, Apache-2.0")
            continue
        lines.append(f"{PREFIX}{soname}: {licence(path, folder)}")
    data = folder.parent.parent / "share" / "espeak-ng-data"
    if data.exists():
        lines.append(f"share/espeak-ng-data: {licence(espeak_data(), folder)}")
        lines.append("bin/shoal-phonemizer and libespeak-ng are a program of their own under the GPL-3; their sources "
                     "are Shoal's repository and Debian's source package espeak-ng")
    (folder / "README").write_text("\n".join(lines) + "\n")


def licence(path, folder):
    """Copies the licence of the package that PATH belongs to; returns "package version"."""
    # Debian 12 knows files of /usr/lib by the name under which they were installed, with or without /usr.
    names = [str(path), str(path)[len("/usr"):] if str(path).startswith("/usr/") else f"/usr{path}"]
    for name in names:
        result = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
        if result.returncode == 0:
            package = result.stdout.split(": ")[0]
            break
    else:
        raise SystemExit(f"{path} belongs to no Debian package: its licence is unknown")
    name = package.split(":")[0]
    shutil.copyfile(f"/usr/share/doc/{name}/copyright", folder / name)
    return output_of("dpkg-query", "-W", "-f", "${Package} ${Version}", package)


def espeak_data():
    for place in ("/usr/lib/x86_64-linux-gnu/espeak-ng-data", "/usr/share/espeak-ng-data"):
        if Path(place).is_dir():
            return Path(place)
    raise SystemExit("espeak-ng-data is not installed")


# libstdc++'s versions of symbols -> the oldest glibc among the distributions that come with them (PEP 600).
LIBSTDCXX_LEVELS = {(3, 4, 29): (2, 34), (3, 4, 30): (2, 35)}


def newest_version(name, files):
    """The newest version NAME_1.2.3 of symbols that any file asks for: (1, 2, 3)."""
    pattern = re.compile(rf"\b{name}_([\d.]+)")
    found = {version for file in files for version in pattern.findall(output_of("objdump", "-p", file))}
    return max(tuple(map(int, version.split("."))) for version in found)


def platform_tag(files):
    """What a system must have to run FILES, as its least glibc."""
    libstdcxx = newest_version("GLIBCXX", files)
    if libstdcxx > max(LIBSTDCXX_LEVELS):
        raise SystemExit(f"GLIBCXX_{'.'.join(map(str, libstdcxx))}: LIBSTDCXX_LEVELS does not know it")
    level = max([newest_version("GLIBC", files), *(level for version, level in LIBSTDCXX_LEVELS.items()
                                                   if version <= libstdcxx)])
    return "manylinux_{}_{}_x86_64".format(*level)


def repair(package, build_dir):
    """Changes the PACKAGE that was staged of BUILD_DIR in place; returns the platform tag of the wheel."""
    native = package / "native"
    files = [file for folder in ("bin", "lib") for file in sorted((native / folder).iterdir())]
    for file in files:
        output_of("strip", "--strip-unneeded", file)
    copied = copy_libraries(files, native / "lib")
    everything = [file for folder in ("bin", "lib") for file in sorted((native / folder).iterdir())]
    for file in everything:
        point_at_copies(file, copied, "$ORIGIN" if file.parent.name == "lib" else "$ORIGIN/../lib")
    if (native / "bin" / "shoal-phonemizer").exists():
        shutil.copytree(espeak_data(), native / "share" / "espeak-ng-data")
    copy_licences(copied, native / "share" / "licences")
    output_of(COMPILED_IN, build_dir, native / "share" / "licences" / "compiled_in")
    return platform_tag(everything)
