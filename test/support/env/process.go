// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	defaultStartTimeout = 4 * time.Minute
	defaultGrace        = 10 * time.Second
	// readyTimeout bounds one call of Ready.
	readyTimeout = 5 * time.Second
	pollInterval = 50 * time.Millisecond
)

// ProcessOptions configure a program. Name and Dir are required, and Path for a process that is to
// be started.
type ProcessOptions struct {
	// Name names the process in messages, its log <Name>.log and its record in Dir.
	Name string
	// Dir is the folder of log and record, and the working folder of the program.
	Dir string
	// Path is the program, Args its arguments.
	Path string
	Args []string
	// Env is added to the current environment, as "KEY=value".
	Env []string
	// Detached lets the process outlive the current one, in its own session.
	Detached bool
	// Ready returns nil once the program works. It is called until then. If nil, the program is
	// ready as soon as it runs.
	Ready func(ctx context.Context) error
	// StartTimeout bounds the wait for Ready; the default is four minutes.
	StartTimeout time.Duration
	// Grace is how long Stop waits after SIGTERM before it kills; the default is 10 s.
	Grace time.Duration
}

// Process is a program that can be started, stopped, frozen, killed and restarted, in any order and
// from any goroutine. Signals go to its whole process group.
type Process struct {
	options ProcessOptions

	// mu guards run, which is nil until the first start.
	mu  sync.Mutex
	run *run
}

// NewProcess prepares a process without starting it. If the folder has a record of a running
// process with this name, it is that process: a later command can stop it by name. Path, Args and
// Env then come from the record unless given.
func NewProcess(o ProcessOptions) (*Process, error) {
	if o.Name == "" || o.Dir == "" || filepath.Base(o.Name) != o.Name {
		return nil, fmt.Errorf("process %q in %q: it needs a plain name and a folder", o.Name, o.Dir)
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	p := &Process{options: o}
	if err := p.adopt(); err != nil {
		return nil, err
	}
	return p, nil
}

// Start runs the program and waits until it is ready. If that fails, ctx ends or the time is up,
// Start kills it and returns a *StartError, or an error that it runs already.
func (p *Process) Start(ctx context.Context) error {
	r, err := p.launch()
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.options.Name, err)
	}
	if err := p.awaitReady(ctx, r); err != nil {
		kill := p.kill(r)
		return p.startError(r, errors.Join(err, kill))
	}
	return nil
}

// Stop sends SIGTERM, kills the program after its grace or when ctx ends, and returns when it has
// ended. Stop on a process that does not run has no effect.
func (p *Process) Stop(ctx context.Context) error {
	r := p.current()
	if r == nil || !r.alive() {
		return p.forget()
	}
	// A frozen process cannot end, so thaw it.
	if err := errors.Join(r.signal(syscall.SIGTERM), r.signal(syscall.SIGCONT)); err != nil {
		return fmt.Errorf("stopping %s: %w", p.options.Name, err)
	}
	grace, cancel := context.WithTimeout(ctx, p.options.Grace)
	defer cancel()
	// Ignore the result: kill what is left of the group.
	_ = r.wait(grace)
	return p.kill(r)
}

// Kill ends the program at once (SIGKILL) and returns when it has ended.
func (p *Process) Kill() error {
	r := p.current()
	if r == nil || !r.alive() {
		return p.forget()
	}
	return p.kill(r)
}

// Restart stops the program if it runs, and starts it with the same arguments.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Freeze stops the program (SIGSTOP) while its connections and ports stay. To others it looks like
// a hanging machine.
func (p *Process) Freeze() error { return p.send("freezing", syscall.SIGSTOP) }

// Thaw resumes a frozen program.
func (p *Process) Thaw() error { return p.send("thawing", syscall.SIGCONT) }

// Wait returns when the program has ended, with its exit error if this process started it, or with
// the error of ctx.
func (p *Process) Wait(ctx context.Context) error {
	r := p.current()
	if r == nil {
		return nil
	}
	return r.wait(ctx)
}

// Running reports whether the program runs; a frozen one does.
func (p *Process) Running() bool {
	r := p.current()
	return r != nil && r.alive()
}

// Outdated reports whether an earlier command started the program with other arguments than it
// would get now.
func (p *Process) Outdated() bool {
	r := p.current()
	return r != nil && r.recorded != nil && !slices.Equal(r.recorded, p.options.Args)
}

// PID is the process ID of the last start, which is also its group's ID; 0 before the first.
func (p *Process) PID() int {
	if r := p.current(); r != nil {
		return r.pid
	}
	return 0
}

// Name is what messages call the process.
func (p *Process) Name() string { return p.options.Name }

// LogPath is the file with the program's output of every start.
func (p *Process) LogPath() string { return filepath.Join(p.options.Dir, p.options.Name+".log") }

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

func (p *Process) send(doing string, s syscall.Signal) error {
	r := p.current()
	if r == nil || !r.alive() {
		return fmt.Errorf("%s %s: it does not run", doing, p.options.Name)
	}
	if err := r.signal(s); err != nil {
		return fmt.Errorf("%s %s: %w", doing, p.options.Name, err)
	}
	return nil
}

// kill kills the whole group and returns when the program has ended.
func (p *Process) kill(r *run) error {
	if err := r.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing %s: %w", p.options.Name, err)
	}
	// SIGKILL cannot be blocked, so the wait needs no timeout.
	r.await()
	return p.forget()
}

func (p *Process) launch() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && p.run.alive() {
		return nil, fmt.Errorf("it runs already, with process id %d", p.run.pid)
	}
	if p.options.Path == "" {
		return nil, errors.New("no program is given")
	}
	log, err := os.OpenFile(p.LogPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	// The program has its own descriptor of the log.
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	r, err := spawn(p.command(log))
	if err != nil {
		return nil, err
	}
	r.logStart = info.Size()
	p.run = r
	if err := p.remember(r); err != nil {
		return nil, errors.Join(err, r.signal(syscall.SIGKILL))
	}
	return r, nil
}

func (p *Process) command(log *os.File) *exec.Cmd {
	cmd := exec.Command(p.options.Path, p.options.Args...)
	cmd.Dir = p.options.Dir
	cmd.Env = append(os.Environ(), p.options.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes(p.options.Detached)
	return cmd
}

// awaitReady returns nil when the program is ready, and otherwise the reason.
func (p *Process) awaitReady(ctx context.Context, r *run) error {
	if p.options.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.StartTimeout,
		fmt.Errorf("not ready after %s", p.options.StartTimeout))
	defer cancel()
	var notYet error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if !r.alive() {
			return false, fmt.Errorf("it ended: %w", r.exitError())
		}
		ask, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		if err := p.options.Ready(ask); err != nil {
			notYet = err
			return false, nil
		}
		return true, nil
	})
	if err == nil || ctx.Err() == nil {
		return err
	}
	if notYet == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), notYet)
}

// StartError names the program that did not start, and the cause, with the end of its log.
type StartError struct {
	// Program is the name of the process.
	Program string
	// LogPath is its log, LogTail the last lines of this start.
	LogPath, LogTail string
	// Err is what was observed, e.g. an exit status.
	Err error
}

// Error is multi-line: the log's last lines follow the message.
func (e *StartError) Error() string {
	tail := e.LogTail
	if tail == "" {
		tail = "(it wrote nothing)"
	}
	return fmt.Sprintf("starting %s: %v; %s ends with:\n%s", e.Program, e.Err, e.LogPath, tail)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

func (p *Process) startError(r *run, err error) error {
	return &StartError{Program: p.options.Name, LogPath: p.LogPath(), LogTail: tail(p.LogPath(), r.logStart), Err: err}
}

// tail returns the end of a log from start on: at most 15 lines of the last 16 KiB.
func tail(path string, start int64) string {
	const lines, window = 15, 16 << 10
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		start = max(start, info.Size()-window)
	}
	buf := make([]byte, window)
	n, _ := f.ReadAt(buf, start)
	all := strings.Split(strings.TrimSpace(string(buf[:n])), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// run is one run of a process.
type run struct {
	pid      int
	birth    string
	logStart int64
	// recorded are the arguments of a process that was adopted.
	recorded []string

	// ended is closed when a started process has ended and exit is set. It is nil for an adopted
	// process, which is polled.
	ended chan struct{}
	exit  error
}

// spawn starts the command in a goroutine that waits for its end. Linux sends the parent-death
// signal when the thread that started the process ends, not the program. So the goroutine locks its
// thread until the process has ended.
func spawn(cmd *exec.Cmd) (*run, error) {
	r := &run{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		r.exit = cmd.Wait()
		close(r.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	r.pid = cmd.Process.Pid
	r.birth = birthOf(r.pid)
	return r, nil
}

func (r *run) alive() bool {
	if r.ended == nil {
		return r.birth != "" && birthOf(r.pid) == r.birth
	}
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// exitError returns how a started process has ended.
func (r *run) exitError() error {
	if r.exit == nil {
		return errors.New("exit status 0")
	}
	return r.exit
}

func (r *run) wait(ctx context.Context) error {
	if r.ended != nil {
		select {
		case <-r.ended:
			return r.exit
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		return !r.alive(), nil
	})
}

// await is wait without a timeout, for a killed process.
func (r *run) await() {
	if r.ended != nil {
		<-r.ended
		return
	}
	for r.alive() {
		time.Sleep(pollInterval)
	}
}

// signal signals the whole group. A group that has ended is no error.
func (r *run) signal(s syscall.Signal) error {
	if r.ended == nil && !r.alive() {
		return nil
	}
	if err := syscall.Kill(-r.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
