"""tests/tools/terminal.py - runs a program on a terminal of its own.

    t = Terminal(["straddle", "chat", ...])
    t.until("> ")
    t.send("text\\r")
    sys.exit(t.end())

until() reads output up to and with a text, and keeps the rest; it has no time
limit, which whoever starts the test has.
"""
import fcntl
import os
import pty
import signal
import struct
import sys
import termios

UP, CTRL_C, CTRL_D, CTRL_U, CTRL_Z = '\x1b[A', '\x03', '\x04', '\x15', '\x1a'
PASTE, PASTED = '\x1b[200~', '\x1b[201~'
PASTES_ON, PASTES_OFF = '\x1b[?2004h', '\x1b[?2004l'


class Terminal:
    def __init__(self, argv, columns=80, job=False, **env):
        self.seen = b''
        self.all = b''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM='xterm', **env)
            set_size(0, columns)
            if job:
                be_shell(argv)
            os.execv(argv[0], argv)

    def until(self, what):
        what = what.encode()
        while what not in self.seen:
            try:
                got = os.read(self.fd, 4096)
            except OSError:     # Linux: the other end is closed
                got = b''
            if not got:
                sys.exit(f'end of output, no {what!r} in {self.seen!r}')
            self.seen += got
            self.all += got
        at = self.seen.index(what)
        before, self.seen = self.seen[:at], self.seen[at + len(what):]
        return before.decode(errors='replace')

    def send(self, text):
        self.send_bytes(text.encode())

    def send_bytes(self, data):
        os.write(self.fd, data)

    def resize(self, columns):
        set_size(self.fd, columns)

    def end(self):
        """Read the rest; the exit status."""
        try:
            while got := os.read(self.fd, 4096):
                self.all += got
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def set_size(fd, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))


def be_shell(argv):
    """Run argv as the job of a shell, which continues it when it has stopped.
    (A process without one is not stopped by its terminal.)"""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(argv[0], argv)
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os._exit(os.waitstatus_to_exitcode(status))
        echo = termios.tcgetattr(0)[3] & (termios.ECHO | termios.ICANON)
        print('stopped with', 'plain' if echo else 'raw', 'input', flush=True)
        os.tcsetpgrp(0, pid)
        os.killpg(pid, signal.SIGCONT)
