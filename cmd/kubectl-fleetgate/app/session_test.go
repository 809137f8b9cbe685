// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

func TestAwait_RetriesTemporaryErrors(t *testing.T) {
	for name, test := range map[string]struct {
		err error
		// lasts is how often the error occurs before requests succeed.
		lasts int
		// want is in the error; empty for none. noted is printed meanwhile.
		want, noted string
	}{
		"503, once":           {apierrors.NewServiceUnavailable("the hub starts"), 1, "", ""},
		"503, for a while":    {apierrors.NewServiceUnavailable("the hub starts"), 8, "", "the hub is not responding: reading: the hub starts"},
		"503, persistent":     {apierrors.NewServiceUnavailable("the hub starts"), 100, "timed out after 10s: the hub is not responding: reading: the hub starts", "the hub starts"},
		"429":                 {apierrors.NewTooManyRequests("busy", 1), 3, "", ""},
		"500":                 {apierrors.NewInternalError(io.ErrUnexpectedEOF), 3, "", ""},
		"a timeout":           {apierrors.NewTimeoutError("slow", 1), 3, "", ""},
		"nobody listens":      {&wrapped{syscall.ECONNREFUSED}, 3, "", ""},
		"it was cut off":      {&url.Error{Op: "Get", URL: "https://hub", Err: io.ErrUnexpectedEOF}, 3, "", ""},
		"a forbidden request": {apierrors.NewForbidden(schema.GroupResource{Resource: "works"}, "w", nil), 1, "forbidden", ""},
		"one that is nowhere": {apierrors.NewNotFound(schema.GroupResource{Resource: "works"}, "w"), 1, "not found", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				streams, _, _, noted := genericiooptions.NewTestIOStreams()
				s := &session{IOStreams: streams, Clock: clock.RealClock{}}
				asked := 0
				err := s.await(t.Context(), 10*time.Second, func(context.Context) (bool, string, error) {
					if asked++; asked <= test.lasts {
						return false, "", fmt.Errorf("reading: %w", test.err)
					}
					return true, "", nil
				})
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if !strings.Contains(noted.String(), test.noted) || test.noted == "" && noted.Len() > 0 {
					t.Errorf("said %q, want %q", noted, test.noted)
				}
			})
		})
	}
}

func TestPatiently_ReportsSlowHub(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		said  string
	}{
		"at once":      {0, ""},
		"in a second":  {time.Second, ""},
		"in a minute":  {time.Minute, "Waiting for the hub to respond.\n"},
		"in two hours": {2 * time.Hour, "Waiting for the hub to respond.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				streams, _, _, said := genericiooptions.NewTestIOStreams()
				s := &session{IOStreams: streams, Clock: clock.RealClock{}}
				err := s.patiently(t.Context(), func(context.Context) error {
					time.Sleep(test.takes)
					return io.ErrUnexpectedEOF
				})
				if !errors.Is(err, io.ErrUnexpectedEOF) || said.String() != test.said {
					t.Errorf("got %v and %q, want %q", err, said, test.said)
				}
			})
		})
	}
}

// wrapped is an error as the network returns it.
type wrapped struct{ syscall.Errno }

func (w *wrapped) Unwrap() error { return w.Errno }

func TestIsMember_SuggestsSimilarName(t *testing.T) {
	scheme, err := overview.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-1"}}
	h := &overview.Hub{WithWatch: fake.NewClientBuilder().WithScheme(scheme).WithObjects(member).Build()}
	if err := isMember(t.Context(), h, "member-1"); err != nil {
		t.Error(err)
	}
	if err := isMember(t.Context(), h, "membre-1"); err == nil || !strings.Contains(err.Error(), "did you mean member-1") {
		t.Errorf("got %v", err)
	}
}
