// Go's lock clients behind the suite's line protocol: see tests/interop/README.md.
// usage: adapter redsync|redislock|rueidislock HOST:PORT[,HOST:PORT…]
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

const retry = 10 * time.Millisecond
const raceWait = 10 * time.Second

type locker interface {
	// False: another has it.
	lock(name string, ttl, wait time.Duration, renew bool) (bool, error)
	// "ok" or "lost".
	unlock() (string, error)
	extend(ttl time.Duration) (string, error)
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "lost"
}

// ---- redsync -----------------------------------------------------------------------------------

type redsyncLocker struct {
	sync *redsync.Redsync
	held *redsync.Mutex
}

func newRedsync(servers []string) *redsyncLocker {
	var pools []redsyncredis.Pool
	for _, one := range servers {
		pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Addr: one})))
	}
	return &redsyncLocker{sync: redsync.New(pools...)}
}

func (l *redsyncLocker) lock(name string, ttl, wait time.Duration, _ bool) (bool, error) {
	m := l.sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithRetryDelay(retry),
		redsync.WithTries(int(wait/retry)+1))
	err := m.Lock()
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.held = m
	return true, nil
}

func (l *redsyncLocker) unlock() (string, error) {
	ok, _ := l.held.Unlock()
	return verdict(ok), nil
}

func (l *redsyncLocker) extend(time.Duration) (string, error) {
	ok, _ := l.held.Extend() // by the expiry it was made with
	return verdict(ok), nil
}

// ---- bsm/redislock -----------------------------------------------------------------------------

type bsmLocker struct {
	client *redislock.Client
	held   *redislock.Lock
}

func (l *bsmLocker) lock(name string, ttl, wait time.Duration, _ bool) (bool, error) {
	options := &redislock.Options{
		RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(retry), int(wait/retry)),
	}
	held, err := l.client.Obtain(context.Background(), name, ttl, options)
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.held = held
	return true, nil
}

func (l *bsmLocker) unlock() (string, error) {
	err := l.held.Release(context.Background())
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return "lost", nil
	}
	return "ok", err
}

func (l *bsmLocker) extend(ttl time.Duration) (string, error) {
	err := l.held.Refresh(context.Background(), ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return "lost", nil
	}
	return "ok", err
}

// ---- rueidislock -------------------------------------------------------------------------------

// Its locks are of the locker's own TTL, so there is one locker for each TTL and way of renewing.
type rueidisLocker struct {
	servers []string
	lockers map[string]rueidislock.Locker
	held    context.Context
	cancel  context.CancelFunc
}

func (l *rueidisLocker) lock(name string, ttl, wait time.Duration, renew bool) (bool, error) {
	key := fmt.Sprint(ttl, renew)
	locker, found := l.lockers[key]
	if !found {
		options := rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: l.servers},
			KeyValidity:  ttl,
			KeyMajority:  1,
			KeyPrefix:    "mutex", // so that it can share a key with redis-semaphore
		}
		if !renew {
			options.ExtendInterval = 100 * ttl
		}
		made, err := rueidislock.NewLocker(options)
		if err != nil {
			return false, err
		}
		locker = made
		l.lockers[key] = locker
	}
	var err error
	if wait == 0 {
		l.held, l.cancel, err = locker.TryWithContext(context.Background(), name)
	} else {
		// What is held ends with the context that was waited with, so that must not time out later.
		waiting, giveUp := context.WithCancel(context.Background())
		patience := time.AfterFunc(wait, giveUp)
		l.held, l.cancel, err = locker.WithContext(waiting, name)
		patience.Stop()
	}
	if errors.Is(err, rueidislock.ErrNotLocked) || errors.Is(err, context.Canceled) {
		return false, nil
	}
	return err == nil, err
}

func (l *rueidisLocker) unlock() (string, error) {
	lost := l.held.Err() != nil
	l.cancel()
	return verdict(!lost), nil
}

func (l *rueidisLocker) extend(time.Duration) (string, error) {
	return verdict(l.held.Err() == nil), nil // it extends by itself
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
	name, ttl, wait := words[0], milliseconds(words[1]), milliseconds(words[2])
	turns, _ := strconv.Atoi(words[3])
	seconds, _ := strconv.ParseFloat(words[4], 64)
	ledger, err := os.OpenFile(words[6], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return "", err
	}
	defer ledger.Close()
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	done := 0
	for done < turns && time.Now().Before(until) {
		if name != "-" {
			got, err := with.lock(name, ttl, wait, false)
			if err != nil {
				return "", err
			}
			if !got {
				continue
			}
		}
		if err := turn(words[5], ledger, words[7]); err != nil {
			return "", err
		}
		if name != "-" {
			if _, err := with.unlock(); err != nil {
				return "", err
			}
		}
		done++
	}
	return fmt.Sprintf("ok %d", done), nil
}

func bench(with locker, name string, turns int) (string, error) {
	began := time.Now()
	for i := 0; i < turns; i++ {
		got, err := with.lock(name, 30*time.Second, 0, true) // as it comes: it renews if it can
		if err != nil {
			return "", err
		}
		if !got {
			return "", errors.New("the lock was not free")
		}
		if _, err := with.unlock(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("ok %.1f", float64(time.Since(began).Microseconds())/float64(turns)), nil
}

func race(with locker, name string, seconds float64, pause time.Duration) (string, error) {
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	done := 0
	var slowest time.Duration
	for time.Now().Before(until) {
		asked := time.Now()
		got, err := with.lock(name, 30*time.Second, raceWait, true) // as it comes: it renews if it can
		if err != nil {
			return "", err
		}
		slowest = max(slowest, time.Since(asked))
		if !got {
			continue
		}
		time.Sleep(pause)
		if _, err := with.unlock(); err != nil {
			return "", err
		}
		time.Sleep(pause)
		done++
	}
	return fmt.Sprintf("ok %d %d", done, slowest.Microseconds()), nil
}

func answer(with locker, words []string) (string, error) {
	switch words[0] {
	case "lock":
		got, err := with.lock(words[1], milliseconds(words[2]), milliseconds(words[3]),
			words[4] == "renew")
		if got {
			return "ok", err
		}
		return "busy", err
	case "unlock":
		return with.unlock()
	case "extend":
		return with.extend(milliseconds(words[1]))
	case "count":
		return count(with, words[1:])
	case "bench":
		turns, _ := strconv.Atoi(words[2])
		return bench(with, words[1], turns)
	case "race":
		seconds, _ := strconv.ParseFloat(words[2], 64)
		return race(with, words[1], seconds, milliseconds(words[3]))
	}
	return "error no such verb", nil
}

func main() {
	servers := strings.Split(os.Args[2], ",")
	var with locker
	switch os.Args[1] {
	case "redsync":
		with = newRedsync(servers)
	case "redislock":
		with = &bsmLocker{client: redislock.New(redis.NewClient(&redis.Options{Addr: servers[0]}))}
	case "rueidislock":
		with = &rueidisLocker{servers: servers, lockers: map[string]rueidislock.Locker{}}
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
