// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

// openList returns a list of one member, and a writer of it that has the marker.
func openList(t *testing.T, w http.ResponseWriter, warn func(http.Header)) (*listWriter, *splice.Marker) {
	t.Helper()
	in := splice.NewReader(strings.NewReader(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`))
	if err := in.Open(); err != nil {
		t.Fatal(err)
	}
	out := newListWriter(w, false, warn)
	marker, err := out.Marker("a", in)
	if err != nil {
		t.Fatal(err)
	}
	return out, marker
}

func item(size int) []byte {
	return []byte(`{"metadata":{"name":"one"},"data":"` + strings.Repeat("x", size) + `"}`)
}

func TestListWriter_SendsWarningsLast(t *testing.T) {
	res, warnings := httptest.NewRecorder(), 0
	out, marker := openList(t, res, func(h http.Header) {
		warnings++
		h.Add("Warning", "late")
	})
	if err := out.Item(marker, item(10)); err != nil || out.sent {
		t.Fatalf("sent %t, %v", out.sent, err)
	}
	restore := out.save()
	if err := out.Item(marker, item(20)); err != nil {
		t.Fatal(err)
	}
	restore()
	if err := out.finish(splice.Metadata{}); err != nil {
		t.Fatal(err)
	}
	if warnings != 1 || res.Header().Get("Warning") != "late" || strings.Count(res.Body.String(), `"one"`) != 1 {
		t.Errorf("%d warnings, %v: %s", warnings, res.Header(), res.Body)
	}
	if !strings.Contains(res.Header().Get("Cache-Control"), "private") {
		t.Errorf("the list may be cached: %v", res.Header())
	}
}

// A list beyond the buffer cannot be replaced by an error. Its connection ends with one.
func TestListWriter_FailsVisiblyOnceSent(t *testing.T) {
	broken := errors.New("broken")
	out, marker := openList(t, httptest.NewRecorder(), func(http.Header) {})
	if got := out.fail(broken); !errors.Is(got, broken) {
		t.Errorf("got %v", got)
	}
	for range 2 {
		if err := out.Item(marker, item(maxBuffered/2)); err != nil {
			t.Fatal(err)
		}
	}
	if !out.sent {
		t.Fatal("more than the limit is buffered")
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // net/http panics with exactly this value.
			t.Errorf("got %v", v)
		}
	}()
	_ = out.fail(broken)
}

// disconnected is a caller that does not read any more.
type disconnected struct{ *httptest.ResponseRecorder }

func (disconnected) Write([]byte) (int, error) { return 0, errors.New("disconnected") }

func TestEventWriter_SendsLinesAtOnce(t *testing.T) {
	res := httptest.NewRecorder()
	w := eventWriter{res}
	w.begin()
	if res.Code != http.StatusOK || !res.Flushed {
		t.Errorf("the headers are not sent: %d, %t", res.Code, res.Flushed)
	}
	res.Flushed = false
	if err := w.write(nil); err != nil || res.Flushed {
		t.Errorf("no lines: flushed %t, %v", res.Flushed, err)
	}
	if err := w.write([]byte("{}\n")); err != nil || !res.Flushed || res.Body.String() != "{}\n" {
		t.Errorf("got %q, flushed %t, %v", res.Body, res.Flushed, err)
	}
	if err := (eventWriter{disconnected{httptest.NewRecorder()}}).write([]byte("{}\n")); err == nil {
		t.Error("a caller that has disconnected is no error")
	}
}
