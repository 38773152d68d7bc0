// etcd's own lock clients behind the suite's line protocol: see tests/interop/README.md.
// usage: adapter mutex|etcdctl HOST:PORT[,HOST:PORT…]
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

type locker interface {
	// False: another has it.
	lock(name string, ttl, wait time.Duration) (bool, error)
	// "ok" or "lost".
	unlock() (string, error)
}

// ---- clientv3/concurrency ----------------------------------------------------------------------

// A session for each TTL, as long as the process: its keep-alive is what holds locks.
type mutexLocker struct {
	client   *clientv3.Client
	sessions map[int]*concurrency.Session
	held     *concurrency.Mutex
	of       *concurrency.Session
}

func seconds(ttl time.Duration) int {
	return int((ttl + time.Second - 1) / time.Second)
}

func (l *mutexLocker) session(ttl time.Duration) (*concurrency.Session, error) {
	if had, found := l.sessions[seconds(ttl)]; found {
		select {
		case <-had.Done():
		default:
			return had, nil
		}
	}
	made, err := concurrency.NewSession(l.client, concurrency.WithTTL(seconds(ttl)))
	if err == nil {
		l.sessions[seconds(ttl)] = made
	}
	return made, err
}

func (l *mutexLocker) lock(name string, ttl, wait time.Duration) (bool, error) {
	session, err := l.session(ttl)
	if err != nil {
		return false, err
	}
	m := concurrency.NewMutex(session, name)
	if wait == 0 {
		err = m.TryLock(context.Background())
	} else {
		patience, giveUp := context.WithTimeout(context.Background(), wait)
		defer giveUp()
		err = m.Lock(patience)
	}
	if errors.Is(err, concurrency.ErrLocked) || errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.held, l.of = m, session
	return true, nil
}

// A mutex whose key is gone is unlocked without a word.
func (l *mutexLocker) unlock() (string, error) {
	return "ok", l.held.Unlock(context.Background())
}

// ---- etcdctl lock ------------------------------------------------------------------------------

// A process for each lock: it prints the key when it has the lock, and gives it back when it is
// told to end.
type ctlLocker struct {
	servers string
	held    *exec.Cmd
}

func (l *ctlLocker) lock(name string, ttl, wait time.Duration) (bool, error) {
	command := exec.Command("etcdctl", "--endpoints="+l.servers, "lock",
		"--ttl="+strconv.Itoa(seconds(ttl)), name)
	command.Env = append(os.Environ(), "ETCDCTL_API=3")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := command.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := command.Start(); err != nil {
		return false, err
	}
	key := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(output).ReadString('\n')
		key <- line
	}()
	// It cannot try: what is asked without waiting is given the time to start.
	select {
	case line := <-key:
		if line == "" {
			return false, fmt.Errorf("etcdctl: %v", command.Wait())
		}
		l.held = command
		return true, nil
	case <-time.After(max(wait, time.Second)):
		return false, end(command)
	}
}

func end(command *exec.Cmd) error {
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	var status *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &status) {
		return err
	}
	return nil
}

func (l *ctlLocker) unlock() (string, error) {
	return "ok", end(l.held)
}

// ---- the protocol ------------------------------------------------------------------------------

func turn(counter string, ledger *os.File, who string) error {
	fmt.Fprintf(ledger, "enter %s\n", who)
	text, err := os.ReadFile(counter)
	if err != nil {
		return err
	}
	value, _ := strconv.Atoi(string(text))
	time.Sleep(time.Millisecond)
	err = os.WriteFile(counter, []byte(strconv.Itoa(value+1)), 0o644)
	fmt.Fprintf(ledger, "leave %s\n", who)
	return err
}

func milliseconds(text string) time.Duration {
	value, _ := strconv.Atoi(text)
	return time.Duration(value) * time.Millisecond
}

func count(with locker, words []string) (string, error) {
	ttl, wait := milliseconds(words[1]), milliseconds(words[2])
	turns, _ := strconv.Atoi(words[3])
	most, _ := strconv.ParseFloat(words[4], 64)
	ledger, err := os.OpenFile(words[6], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return "", err
	}
	defer ledger.Close()
	until := time.Now().Add(time.Duration(most * float64(time.Second)))
	done := 0
	for done < turns && time.Now().Before(until) {
		got, err := with.lock(words[0], ttl, wait)
		if err != nil {
			return "", err
		}
		if !got {
			continue
		}
		if err := turn(words[5], ledger, words[7]); err != nil {
			return "", err
		}
		if _, err := with.unlock(); err != nil {
			return "", err
		}
		done++
	}
	return fmt.Sprintf("ok %d", done), nil
}

func answer(with locker, words []string) (string, error) {
	switch words[0] {
	case "lock":
		got, err := with.lock(words[1], milliseconds(words[2]), milliseconds(words[3]))
		if got {
			return "ok", err
		}
		return "busy", err
	case "unlock":
		return with.unlock()
	case "count":
		return count(with, words[1:])
	}
	return "error no such verb", nil
}

func locks(kind, servers string) (locker, error) {
	if kind == "etcdctl" {
		return &ctlLocker{servers: servers}, nil
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(servers, ","), DialTimeout: 10 * time.Second,
		Logger: zap.NewNop(),
	})
	return &mutexLocker{client: client, sessions: map[int]*concurrency.Session{}}, err
}

func main() {
	runtime.LockOSThread() // Pdeathsig is that of the thread
	with, err := locks(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		said, err := answer(with, strings.Split(lines.Text(), " "))
		if err != nil {
			said = "error " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(said)
	}
}
