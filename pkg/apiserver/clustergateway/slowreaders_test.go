// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authentication/user"
)

// endless is a body that always has more.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func (endless) Close() error { return nil }

// quiet is a body that has one line and then nothing until it is closed.
type quiet struct {
	line   *bytes.Buffer
	closed chan struct{}
	close  func()
}

func (q quiet) Read(p []byte) (int, error) {
	if q.line.Len() > 0 {
		return q.line.Read(p)
	}
	<-q.closed
	return 0, io.EOF
}

func (q quiet) Close() error {
	q.close()
	return nil
}

// followed returns a body whose reader takes a full buffer every pause; 0 means never again.
func followed(s *slowReaders, pause time.Duration, body io.ReadCloser) *exchange {
	x := &exchange{request: &Request{Member: "m"}, rights: rights{caller: &user.DefaultInfo{Name: "u"}}}
	res := &http.Response{ProtoMajor: 2, ContentLength: -1, Body: body}
	s.follow(res, x, 100)
	go func() {
		defer func() { _ = res.Body.Close() }()
		for buffer := make([]byte, 10); x.cut.Load() == nil; time.Sleep(pause) {
			if _, err := res.Body.Read(buffer); err != nil || pause == 0 {
				return
			}
		}
	}()
	return x
}

// countedGauge counts how often its value is set.
type countedGauge struct {
	prometheus.Gauge
	set atomic.Int64
}

func (c *countedGauge) Set(float64) { c.set.Add(1) }

func TestSlowReaders_ChecksOnceForAllReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, err := newMetrics(nil)
		if err != nil {
			t.Fatal(err)
		}
		checks := &countedGauge{}
		metrics.unread = checks
		s := newSlowReaders(SlowReaders{}, metrics)
		for range 100 { // Each of them is alone.
			res := &http.Response{ProtoMajor: 2, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(nil))}
			s.follow(res, &exchange{}, 100)
			_ = res.Body.Close()
		}
		last := followed(s, time.Millisecond, endless{})
		time.Sleep(3*checkEvery + checkEvery/2)
		if got := checks.set.Load(); got != 3 {
			t.Errorf("%d checks in 3 intervals, want 3", got)
		}
		last.cut.Store(&errSlowReader)
		time.Sleep(3 * checkEvery)
		if got := checks.set.Load(); got != 4 {
			t.Errorf("%d checks, want 4: the last one finds no replies", got)
		}
	})
}

func TestSlowReaders_EndsTheSlowestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, err := newMetrics(nil)
		if err != nil {
			t.Fatal(err)
		}
		s := newSlowReaders(SlowReaders{Total: 250}, metrics)
		closed := make(chan struct{})
		waits := quiet{line: bytes.NewBufferString("line\n"), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
		readers := map[string]struct {
			x    *exchange
			slow bool
		}{
			"one that keeps up":        {x: followed(s, time.Nanosecond, waits)},
			"one on a slow link":       {x: followed(s, 10*time.Millisecond, endless{})},
			"one on a slower link":     {x: followed(s, 90*time.Millisecond, endless{})},
			"one that hardly reads":    {x: followed(s, 7*time.Second, endless{}), slow: true},
			"one that hardly reads, 2": {x: followed(s, 8*time.Second, endless{}), slow: true},
		}
		time.Sleep(20 * time.Second)
		for name, reader := range readers {
			if got := reader.x.cut.Load() != nil; got != reader.slow {
				t.Errorf("%s: ended is %t", name, got)
			}
			reader.x.cut.Store(&errSlowReader)
		}
		_ = waits.Close()
		time.Sleep(20 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.replies) > 0 {
			t.Errorf("%d replies are left", len(s.replies))
		}
	})
}
