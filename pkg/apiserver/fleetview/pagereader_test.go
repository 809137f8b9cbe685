// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// requested are the requests that members got, as member?query.
type requested struct {
	mu  sync.Mutex
	all []string
}

func (r *requested) add(of *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, of.Host+"?"+of.URL.RawQuery)
}

func (r *requested) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// pageReaderOf reads so many members, whose requests are recorded.
func pageReaderOf(t *testing.T, members int, member http.HandlerFunc) (*pageReader, *requested) {
	t.Helper()
	got := &requested{}
	h := New(Config{Parallel: 64, Gateway: fakeGateway{member: func(w http.ResponseWriter, r *http.Request) {
		got.add(r)
		member(w, r)
	}}})
	f := h.newFanout(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), "all", DefaultDeadline)
	t.Cleanup(f.close)
	p := &pageReader{fanout: f, wave: firstWave}
	for i := range members {
		p.requests = append(p.requests, memberRequest{member: fmt.Sprintf("m%02d", i), url: &url.URL{}})
	}
	return p, got
}

func listing(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, listAt5) }

func TestPageReader_RequestsWavesOfMembersInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const members = 20
		p, got := pageReaderOf(t, members, listing)
		for i := range members {
			reply, err := p.reply(t.Context(), 7)
			if want := fmt.Sprintf("m%02d", i); err != nil || reply.member != want || reply.limit != 7 {
				t.Fatalf("got %s up to %d, %v, want %s", reply.member, reply.limit, err, want)
			}
			synctest.Wait()
			if want := []int{firstWave, 3 * firstWave, members}[min((i+firstWave)/(2*firstWave), 2)]; got.count() != want {
				t.Fatalf("at member %d: %d requests, want %d", i, got.count(), want)
			}
			p.advance()
		}
		if !p.done() {
			t.Error("it is not done after the last member")
		}
	})
}

func TestPageReader_UnresponsiveMemberDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const members = 20
		p, got := pageReaderOf(t, members, func(w http.ResponseWriter, r *http.Request) {
			if r.Host == "m00" {
				<-r.Context().Done()
				return
			}
			listing(w, r)
		})
		reply, err := p.reply(t.Context(), 7)
		if err != nil || reply.member != "m00" || reply.ok() {
			t.Errorf("got %s, %d, %v", reply.member, reply.code, err)
		}
		if got.count() != members {
			t.Errorf("%d members got a request while one did not reply, want %d", got.count(), members)
		}
	})
}

func TestPageReader_ContinuesWithTokenOfMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, got := pageReaderOf(t, 3, listing)
		if err := p.resume("m01", "token"); err != nil {
			t.Fatal(err)
		}
		if _, err := p.reply(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		p.again(t.Context(), 3)
		if reply, err := p.reply(t.Context(), 3); err != nil || reply.member != "m01" || reply.limit != 3 {
			t.Errorf("got %s up to %d, %v", reply.member, reply.limit, err)
		}
		p.stop()
		synctest.Wait()
		want := map[string]bool{"m01?continue=token&limit=7": true, "m02?limit=7": true, "m01?limit=3": true}
		all := map[string]bool{}
		for _, request := range got.all {
			all[request] = true
		}
		if diff := cmp.Diff(want, all); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPageReader_MemberOfTokenHasLeft(t *testing.T) {
	p, _ := pageReaderOf(t, 3, listing)
	if err := p.resume("m00a", "token"); !apierrors.IsResourceExpired(err) {
		t.Errorf("in the middle of its list: %v", err)
	}
	if err := p.resume("m00a", ""); err != nil || p.next != 1 {
		t.Errorf("at its beginning: continues at %d, %v", p.next, err)
	}
}
