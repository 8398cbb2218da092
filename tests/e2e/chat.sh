#!/usr/bin/env bash
# mica chat: commands and messages of several lines from a pipe, and a person at a terminal with and without libedit.
. tests/check.sh
mica=$BUILD/mica
model=$work/random.gguf
check 'make a random model' "$mica" make-random --shape tiny --seed 5 -o "$model"
chat() { run "$mica" chat "$model" -n 4 --temp 0 --template chatml "$@"; }

# answers TEXT: runs a chat with this input; stores its answers
answers()
{
    chat < <(printf "$1")
    check "chat: exit code 0 ($err)" test "$status" = 0
    echo "$out" > "$work/answers"
}
# The used context shows the length of the conversation.
context() { sed -n 's/^Context: \([0-9]*\) of .*/\1/p' <<< "$err" | tail -n 1; }

answers 'one two\n'
short=$(context)
check 'the context is counted' test "$short" -gt 0
answers 'one \\\ntwo\n'
joined=$(context)
check 'a backslash joins lines into one message' test "$joined" -lt "$((2 * short))" -a "$joined" -ge "$short"
answers '"""\none \ntwo\n"""\n'
check 'a block is the same message' test "$(context)" = "$joined"
answers '"""one \ntwo"""\n'
check 'a block may begin and end within lines' test "$(context)" = "$joined"
answers 'one two\none two\n'
check 'a second message makes it longer' test "$(context)" -gt "$short"
answers 'one two\n/clear\none two\n'
check '/clear starts again' test "$(context)" = "$short"
answers 'one two\n/reset\none two\n/quit\none two\n'
check '/reset starts again, /quit ends' test "$(context)" = "$short"
answers '/system be kind\none two\n'
check '/system adds a system message' test "$(context)" -gt "$short"
answers '/help\n'
check '/help lists the commands' contains "$err" '/stats'
check '/help: nothing on stdout' test -z "$out"
answers 'one two\n/stats\n'
check '/stats prints the figures twice' test "$(grep -c '^Generation: ' <<< "$err")" = 2
answers 'one \\'
check 'a backslash at the end of the input' test "$(context)" -gt 0
check 'no banner without a terminal' test -z "$(grep -e 'lists the commands, /exit' <<< "$err")"
chat --system-prompt kind --max-tokens 2 < <(printf 'one\n')
check 'aliases' test "$status" = 0

python=$(command -v python3 || true)
if [ -z "$python" ]; then
    skip 'a terminal: there is no python3'
    finish
fi
# terminal TEXT VARIABLE=VALUE...: a chat on a terminal; prints what the terminal shows, then the exit code. ^C is sent to
# the process group by the terminal.
cat > "$work/terminal.py" << 'END'
import os, pty, select, sys, time
text, command = sys.argv[1].encode().decode("unicode_escape").encode("latin1"), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown = b""
def read(seconds, until=None):
    global shown
    end = time.time() + seconds
    while time.time() < end:
        if select.select([fd], [], [], 0.05)[0]:
            try: data = os.read(fd, 4096)
            except OSError: return False
            if not data: return False
            shown += data
        if until and shown.endswith(until): return True
    return True
for line in text.splitlines(keepends=True):
    read(60, b"> ")
    time.sleep(0.2) # libedit changes the mode of the terminal after it has printed the prompt
    os.write(fd, line.replace(b"\n", b"\r"))
    read(0.3)
end = time.time() + 20
while read(1) and time.time() < end: pass
if time.time() >= end: os.kill(pid, 9)
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(shown.replace(b"\r", b""))
print("\nexit code", os.waitstatus_to_exitcode(status))
END
terminal()
{
    local text=$1
    shift
    out=$(timeout 120 env TERM=xterm XDG_STATE_HOME="$work/state" "$@" "$python" "$work/terminal.py" "$text" \
        "$mica" chat "$model" -n 4 --temp 0 --template chatml)
}
has_libedit() { "$python" -c 'import ctypes, sys
for name in ("libedit.so.2", "libedit.so.0", "libedit.so", "libedit.dylib"):
    try: ctypes.CDLL(name); sys.exit(0)
    except OSError: pass
sys.exit(1)'; }

for edit in 1 0; do
    rm -rf "$work/state"
    terminal 'hello\n/stats\n/hlp\n/exit\n' MICA_EDIT=$edit
    check "terminal, editing $edit: exit code 0" contains "$out" 'exit code 0'
    check "terminal, editing $edit: banner" contains "$out" '/help lists the commands, /exit or Ctrl-D ends the chat'
    check "terminal, editing $edit: model, parameters and device" grep -qE '\(bitnet-b1.58, [0-9.]+ million parameters, .*\)' <<< "$out"
    check "terminal, editing $edit: suggestion" contains "$out" "did you mean '/help'?"
    check "terminal, editing $edit: figures" contains "$out" 'Generation: '
    terminal '\x04' MICA_EDIT=$edit
    check "terminal, editing $edit: Ctrl-D ends" contains "$out" 'exit code 0'
    terminal '\x03' MICA_EDIT=$edit
    check "terminal, editing $edit: Ctrl-C at the prompt: exit code 130 ($out)" contains "$out" 'exit code 130'
done
if has_libedit; then
    rm -rf "$work/state"
    terminal 'hello there\n/exit\n' MICA_EDIT=1
    history=$work/state/mica/chat_history
    check 'history: the file' grep -q hello "$history"
    check 'history: only the user may read it' test "$(ls -l "$history" | cut -c 1-10)" = -rw-------
    terminal '\x1b[A\x1b[A\n/exit\n' MICA_EDIT=1
    check 'history: recalled with the arrow keys' test "$(grep -c 'hello' "$history")" = 2
    rm -rf "$work/state"
    terminal 'hello there\n/exit\n' MICA_HISTORY=off
    check 'MICA_HISTORY=off: no file' test ! -e "$work/state"
    terminal 'hello there\n/exit\n' MICA_HISTORY="$work/mine"
    check 'MICA_HISTORY=FILE: that file' grep -q hello "$work/mine"
else
    skip 'history: there is no libedit'
fi
finish
