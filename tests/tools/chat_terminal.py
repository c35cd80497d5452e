"""tests/tools/chat_terminal.py - chat on a terminal, for e2e/chat_terminal.sh.

usage: chat_terminal.py CASE STRADDLE MODEL

Runs in a folder of its own.  Exits with 1 and what was seen if a case fails.
"""
import json
import os
import stat
import sys
import time

from terminal import (CTRL_C, CTRL_D, CTRL_U, CTRL_Z, PASTE, PASTED,
                      PASTES_OFF, PASTES_ON, UP, Terminal)

CASE, STRADDLE, MODEL = sys.argv[1:4]
HISTORY = os.path.join(os.getcwd(), 'state/straddle/history')


def chat(*args, job=False, **env):
    """A chat that waits for its first line."""
    env.setdefault('XDG_STATE_HOME', os.path.join(os.getcwd(), 'state'))
    t = Terminal([STRADDLE, 'chat', '-q', '-m', MODEL, '--temp', '0', '-n',
                  '4', *args], job=job, **env)
    t.until(PASTES_ON + '> ')
    return t


def say(t, line):
    """A line, and what comes before the next prompt."""
    t.send(line + '\r')
    t.until(PASTES_OFF)
    return t.until(PASTES_ON)


def quit_chat(t, status=0):
    t.send('/quit\r')
    got = t.end()
    assert got == status, (got, t.all)


def messages(name, role='user'):
    with open(name) as f:
        return [m['content'] for m in json.load(f) if m['role'] == role]


def expect(got, want):
    assert got == want, f'{got!r}, not {want!r}'


# --- messages of several lines ---

def a_paste_is_one_message():
    t = chat()
    t.send(PASTE + 'In the beginning\rAnd the LORD\tsaid \\\n/reset\n' + PASTED)
    t.until('/reset')
    say(t, '')
    t.send(PASTE + 'In the' + PASTED)   # no newline: edited like typed text
    t.until('In the')
    say(t, ' end')
    say(t, '/save saved')
    expect(messages('saved'), ['In the beginning\nAnd the LORD\tsaid \\\n/reset',
                               'In the end'])
    quit_chat(t)
    # The mode is off whenever the program does not wait for a line.
    out = t.all.decode()
    expect(out.count(PASTES_ON), out.count(PASTES_OFF))
    assert out.rindex(PASTES_ON) < out.rindex(PASTES_OFF), out


def a_long_paste_is_whole():
    text = '\n'.join('line %d of a text' % i for i in range(300))
    t = chat('--ctx', '8192')
    t.send(PASTE + text + PASTED)
    t.until('line 299 of a text')
    say(t, '')
    say(t, '/save saved')
    expect(messages('saved'), [text])
    quit_chat(t)


def a_backslash_continues():
    t = chat()
    t.send('In the \\\r')
    t.until('. ')
    t.send('beginning\r')
    t.until(PASTES_ON)
    say(t, '/save saved')
    expect(messages('saved'), ['In the \nbeginning'])
    t.send('/quit \\\r')        # no message, so it is not continued
    expect(t.end(), 0)


def quotes_make_a_block():
    t = chat()
    t.send('"""In the\r')
    t.until('. ')
    t.send('/reset\r')
    t.until('. ')
    t.send('\r')
    t.until('. ')
    t.send('end"""\r')
    t.until('> ')
    say(t, '/save saved')
    expect(messages('saved'), ['In the\n/reset\n\nend'])
    quit_chat(t)


# A Latin-1 letter: the first byte of a longer character, which never comes.
def half_a_character_swallows_no_key():
    t = chat()
    t.send_bytes(PASTE.encode() + b'In the \xe9' + PASTED.encode())
    t.until('\ufffd')
    say(t, '')
    t.send_bytes(b'caf\xe9\r')
    t.until(PASTES_OFF)
    t.until(PASTES_ON)
    say(t, '/save saved')
    expect(messages('saved'), ['In the \ufffd', 'caf\ufffd'])
    quit_chat(t)


# --- Ctrl-C ---

def ctrl_c_clears_the_line():
    t = chat()
    t.send('/quit')
    t.until('/quit')
    t.send(CTRL_C)
    t.until('^C')
    t.until('> ')
    assert '0 turns' in say(t, '/stats'), t.all
    t.send(CTRL_C)
    t.until('^C')
    t.until('> ')
    t.send('x')                 # a key: the next one is the first again
    t.until('x')
    t.send(CTRL_C)
    t.until('^C')
    t.until('> ')
    t.send(CTRL_C)
    expect(t.end(), 0)


def ctrl_c_forgets_a_block():
    t = chat()
    t.send('"""In the\r')
    t.until('. ')
    t.send(CTRL_C)
    t.until('^C')
    t.until('> ')
    say(t, 'And God')
    say(t, '/save saved')
    expect(messages('saved'), ['And God'])
    quit_chat(t)


# The script stops reading, so the terminal's buffer fills.
def ctrl_c_ends_an_answer():
    t = chat('-n', '-1', '--ctx', '16384')
    t.send('In the begining\x02\x02\x02n\r')
    t.until('the LORD')
    t.send(CTRL_C)
    t.until(PASTES_ON)
    t.send(UP)
    t.until('In the beginning')
    t.send(CTRL_U)
    assert '1 turn, ' in say(t, '/stats'), t.all
    assert b'until you stopped it' in t.all, t.all
    t.send(CTRL_D)
    expect(t.end(), 0)


def ctrl_c_ends_a_long_message():
    t = chat('-v', '--ctx', '16384', '--batch', '1')
    t.send(PASTE + 'and the LORD said\n' * 3000 + 'Amen' + PASTED)
    t.until('Amen')
    t.send('\r')
    t.until('message: ')        # the line of its progress
    t.send(CTRL_C)
    t.until('/undo takes it back')
    t.until('> ')
    assert 'undo: 0 turns, 0 of' in say(t, '/undo'), t.all[-500:]
    say(t, 'In the')
    say(t, '/save saved')
    expect(messages('saved'), ['In the'])
    quit_chat(t)


# The worker of the session hangs at its start, and does not see that the program
# ends; as a worker does, it ignores the terminal's SIGINT.  The one before
# measures what a process needs.
def ctrl_c_ends_a_load():
    with open('launch', 'w') as f:
        f.write('#!/bin/sh\ncase "$*" in *@reader*) exec "$@";; esac\n'
                'mkdir first 2>/dev/null && exec "$@"\n'
                "trap '' INT\n: >hangs\nexec sleep 1000\n")
    os.chmod('launch', 0o700)
    t = Terminal([STRADDLE, 'chat', '-v', '-m', MODEL],
                 STRADDLE_LAUNCH=os.path.abspath('launch'))
    t.until('none -> spawned')
    t.until('none -> spawned')
    while not os.path.exists('hangs'):  # before that SIGINT would end it
        time.sleep(0.01)
    t.send(CTRL_C)
    expect(t.end(), 1)
    assert b'spawned -> failed: killed before it was ready' in t.all, t.all
    assert b'interrupted by signal 2' in t.all, t.all


# --- history ---

def history_is_kept():
    t = chat()
    say(t, 'first \x16\x1b[2Jline')     # Ctrl-V: the key as it is
    t.send(PASTE + 'two\nlines \\n' + PASTED)
    t.until('lines')
    say(t, '')
    quit_chat(t)
    expect(stat.S_IMODE(os.stat(HISTORY).st_mode), 0o600)
    expect(stat.S_IMODE(os.stat(os.path.dirname(HISTORY)).st_mode), 0o700)
    with open(HISTORY) as f:
        expect(f.read(), 'first \\x1b[2Jline\ntwo\\nlines \\\\n\n/quit\n')
    os.chmod(HISTORY, 0o644)
    t = chat()
    t.send(UP)
    t.until('/quit')
    t.send(UP)
    t.until('lines')
    t.send('\r')
    t.until(PASTES_ON)
    say(t, '/save saved')
    expect(messages('saved'), ['two\nlines \\n'])
    quit_chat(t)
    expect(stat.S_IMODE(os.stat(HISTORY).st_mode), 0o600)


def an_empty_block_is_kept_as_one():
    t = chat()
    say(t, 'In the')
    say(t, '""""""')
    quit_chat(t)
    with open(HISTORY) as f:
        expect(f.read(), 'In the\n""""""\n/quit\n')


def history_is_bounded_and_harmless():
    os.makedirs(os.path.dirname(HISTORY))
    with open(HISTORY, 'wb') as f:
        for i in range(3000):
            f.write(b'entry %d\n' % i)
        f.write(b'bad \xff byte\n\\x00\\x1b]0;title\\x07raw \x1b[2J\n' +
                b'x' * 3_000_000 + b'\nlast\nwithout its newline')
    t = chat()
    t.send(UP)
    t.until('without its newline')
    t.send(UP)
    t.until('last')
    t.send(CTRL_U)
    quit_chat(t)
    assert os.path.getsize(HISTORY) <= 1 << 20, os.path.getsize(HISTORY)
    assert b'\x1b]0' not in t.all and b'\x1b[2J' not in t.all, t.all
    with open(HISTORY, 'wb') as f:
        for i in range(3000):
            f.write(b'entry %d\n' % i)
        f.write(b'\\x1b]0;title\\x07raw \x1b[2J\nnewest\n')
    t = chat()
    t.send(UP + UP)
    t.until(']0;title')
    assert b'\x1b]0' not in t.all and b'\x1b[2J' not in t.all, t.all
    t.send(CTRL_U)
    quit_chat(t)
    with open(HISTORY, 'rb') as f:
        expect(len(f.readlines()), 1001)


def no_folder_no_history():
    with open('state', 'w'):
        pass
    t = chat('-v')
    assert 'lines are not kept' in t.all.decode(), t.all
    say(t, 'In the')
    t.send(UP)
    t.until('In the')           # within the chat there is one
    t.send(CTRL_U)
    quit_chat(t)
    os.mkfifo('pipe')
    os.unlink('state')
    os.makedirs('state/straddle')
    os.rename('pipe', HISTORY)
    t = chat('-v')
    assert 'lines are not kept' in t.all.decode(), t.all
    quit_chat(t)


# --- the terminal ---

def a_new_width_draws_the_line_again():
    t = chat()
    text = 'abcdefghi ' * 6
    t.send(text)
    for _ in range(6):
        t.until('i')
    t.resize(40)
    t.until('> ')
    expect(t.until('abcdefghi abcdefghi abcdefghi abcdefgh'), '')
    t.send(CTRL_U)
    t.resize(100)
    t.until('> ')
    quit_chat(t)


def ctrl_z_leaves_a_plain_terminal():
    t = chat(job=True)
    t.send('In the')
    t.until('In the')
    t.send(CTRL_Z)
    t.until(PASTES_OFF)
    t.until('stopped with plain input')
    t.until(PASTES_ON)
    t.until('> In the')
    say(t, ' end')
    say(t, '/save saved')
    expect(messages('saved'), ['In the end'])
    quit_chat(t)


# --- files, and the exit status ---

def save_asks_before_it_replaces():
    with open('saved', 'w') as f:
        f.write('precious')
    t = chat()
    say(t, 'In the')
    for answer in ('n', '', 'x'):
        t.send('/save saved\r')
        t.until('replace saved? [y/N] ')
        assert 'not replaced' in say(t, answer), t.all
    with open('saved') as f:
        expect(f.read(), 'precious')
    t.send('/save saved\r')
    t.until('replace saved? [y/N] ')
    t.send(CTRL_C)
    t.until('not replaced')
    t.until('> ')
    t.send('/save saved\r')
    t.until('replace saved? [y/N] ')
    say(t, 'y')
    expect(messages('saved'), ['In the'])
    quit_chat(t)


# The question is cut, but not within a character.
def a_long_name_is_asked_for():
    name = 'x' + 'é' * 110
    with open(name, 'w') as f:
        f.write('precious')
    t = chat()
    say(t, 'In the')
    t.send('/save ' + name + '\r')
    t.until('? [y/N] ')
    assert '\ufffd' not in t.all.decode(errors='replace'), t.all
    say(t, 'y')
    expect(messages(name), ['In the'])
    quit_chat(t)


def mistyped_commands_are_no_failure():
    t = chat()
    say(t, '/nonsense')
    say(t, '/undo')
    say(t, '/drop 3')
    say(t, '/drop x')
    say(t, '/save')
    say(t, '/load nowhere')
    say(t, 'In the')
    quit_chat(t)


def a_failed_save_is_a_failure():
    t = chat()
    say(t, 'In the')
    say(t, '/save no/where')
    quit_chat(t, 1)
    assert b'not saved' in t.all, t.all


globals()[CASE]()
