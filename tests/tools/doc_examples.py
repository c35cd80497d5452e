#!/usr/bin/env python3
"""tests/tools/doc_examples.py - run the shell examples of a document.

usage: doc_examples.py BIN SCRATCH DOCUMENT

In Markdown it finds fenced blocks marked sh (one command per line) and console
(commands after "$ ", each followed by its output); in mdoc, commands after "$ " in
.Dl and .Bd.  A backslash continues a line.

Every command must be quoted for all shells.  A command is run if it calls nothing
but straddle, on files of the tree; /tmp/ is replaced by SCRATCH.  The output must
have the lines that the document shows, where numbers, sizes and hashes may differ
and "..." matches any lines.  Generated text only has to be there.

Prints a line for each failure and "N run, N not run" at the end; exits with 1 if an
example failed.
"""
import os
import re
import shlex
import subprocess
import sys

LIMIT_S = 300
EXACT = os.environ.get('EXACT', '1') == '1'     # compare outputs
FILE = re.compile(r'[\w./-]*\w\.(gguf|conf|txt|jsonl?|f32)$')
CALL = re.compile(r'(^|(?<=[ |]))(build/)?straddle(?= )')


def blocks_of_markdown(text):
    """Yield the kind and the lines of each fenced block of examples."""
    kind, lines = None, []
    for line in text.splitlines():
        if line.startswith('```'):
            if kind in ('sh', 'console'):
                yield kind, lines
            kind, lines = (line[3:] or 'text') if kind is None else None, []
        elif kind is not None:
            lines.append(line)


def unescape_mdoc(line):
    """A line of mdoc with its escapes replaced."""
    for escape, char in (('\\(dq', '"'), ('\\&', ''), ('\\-', '-'),
                         ('\\e', '\\')):
        line = line.replace(escape, char)
    return line


def blocks_of_mdoc(text):
    lines = None
    for line in text.splitlines():
        if line.startswith('.Dl $ '):
            yield 'console', [unescape_mdoc(line[4:])]
        elif line.startswith('.Bd '):
            lines = []
        elif line.startswith('.Ed'):
            if lines and lines[0].startswith('$ '):
                yield 'console', lines
            lines = None
        elif lines is not None:
            lines.append(unescape_mdoc(line))


def examples(kind, lines):
    """The commands of a block, each with its output (None: the block has none)."""
    found, more = [], False
    for line in lines:
        if more:
            found[-1][0] += '\n' + line
        elif kind == 'sh' and line.strip():
            found.append([line, None])
        elif line.startswith('$ '):
            found.append([line[2:], None])
        elif found:
            found[-1][1] = (found[-1][1] or []) + [line]
            continue
        more = line.endswith('\\')
    return found


def unquoted(command):
    """Unquoted characters that some shell expands, or reads as a comment."""
    bare = re.sub(r"'[^']*'|\"(\\.|[^\"\\])*\"|\\\n", ' ', command)
    return re.findall(r'[*?\[\]{}~!]|(?<=\s)#', bare.replace('"$?"', ''))


def is_runnable(command):
    """Calls only straddle, on files of the tree, and needs no emulator.  A
    model.gguf in the current folder is the user's."""
    if 'hexagon' in command:
        return False
    for part in re.split(r'[|;]|&&', command):
        words = shlex.split(part)
        if words and words[0] not in ('build/straddle', 'straddle', 'printf',
                                      'echo'):
            return False
        for word in words[1:]:
            name = word.lstrip('<>')
            if FILE.match(name) and not name.startswith(
                    ('/tmp/', 'tests/', 'config/')):
                return False
    return CALL.search(command) is not None


def shape(line):
    line = re.sub(r'"text":"(\\.|[^"\\])*"', '"text":"S"', line.strip())
    line = re.sub(r'^(peak|caps|machine): .*', r'\1: ...', line)
    line = re.sub(r'logits: [0-9a-f]{16}', 'logits: H', line)
    line = re.sub(r'\b(cgroup v[12]|RLIMIT_DATA|ledger)$', 'HOLDER', line)
    if not line.startswith('exit status '):
        line = re.sub(r'[-+]?\d+(\.\d+)?(e[-+]\d+)?', 'N', line)
    line = re.sub(r'N (B|KiB|MiB|GiB)\b', 'SIZE', line)
    return re.sub(r'\s+', ' ', line)


def is_note(line):
    """A note about something that this machine lacks."""
    return line.startswith('straddle: note: ')


def lines_match(want, got):
    """The lines are equal, where "..." matches any lines."""
    if not want:
        return not got
    if want[0] == '...':
        return any(lines_match(want[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and want[0] == got[0] and lines_match(want[1:], got[1:])


def compare(command, want, out, err):
    """The error in a command's output, with the lines; None: it is as shown."""
    want = [shape(line) for line in want]
    out = [shape(line) for line in out]
    err = [shape(line) for line in err if not is_note(line)]
    want_err = [line for line in want
                if line == '...' or (line in err and line not in out)]
    want_out = [line for line in want
                if line == '...' or line not in want_err]
    if not lines_match(want_err, err):
        return 'stderr has other lines', want_err, err
    if re.search(r'straddle (run|chat) ', command) and \
            not re.search(r'--json|--prompts', command):
        text = [line for line in want_out if line != '...']
        missing = [line for line in text if line not in out and re.match(
            r'straddle: |exit |cpuN |hash |load |session ', line)]
        if missing or bool(text) != bool(out):
            return 'stdout has another form', want_out, out
    elif not lines_match(want_out, out):
        return 'stdout has other lines', want_out, out
    return None


def run(command, binary, scratch):
    command = command.replace('/tmp/', scratch + '/')
    command = CALL.sub(lambda m: shlex.quote(binary), command)
    done = subprocess.run(['bash', '-c', command], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=LIMIT_S, text=True)
    return (done.returncode, done.stdout.splitlines(),
            done.stderr.splitlines())


def main():
    binary, scratch, path = sys.argv[1:]
    text = open(path).read()
    blocks = (blocks_of_markdown if path.endswith('.md') else
              blocks_of_mdoc)(text)
    nrun = nleft = failed = 0
    for kind, lines in blocks:
        for command, want in examples(kind, lines):
            wrong = None
            if unquoted(command):
                wrong = 'not quoted: ' + ' '.join(unquoted(command)), [], []
            elif not is_runnable(command):
                nleft += 1
                continue
            else:
                nrun += 1
                rc, out, err = run(command, binary, scratch)
                if rc != 0:
                    wrong = 'exit status %d' % rc, [], out + err
                elif want is not None and EXACT:
                    wrong = compare(command, want, out, err)
            if wrong:
                failed += 1
                print('FAILED: %s: %s: %s' % (os.path.basename(path), command,
                                              wrong[0]))
                for line in wrong[1]:
                    print('    document: ' + line[:150])
                for line in wrong[2]:
                    print('    output:   ' + line[:150])
    print('%d run, %d not run' % (nrun, nleft))
    return failed != 0 or nrun == 0


if __name__ == '__main__':
    sys.exit(main())
