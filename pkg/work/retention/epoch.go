// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// If a ManifestWork or ManagedServiceAccount no longer exists on the hub, the agent cannot tell
// from it whether a user deleted it or a restore lost it. The agent therefore keeps a counter on
// the hub, in its own Lease. Before it creates something new on the member, it increments the
// counter and stores the number with the new object. A hub whose counter lacks a number was
// restored to a state before the request for that object. Only this agent writes the counter, so it
// cannot advance while the agent is disconnected.
//
// Lost numbers are not reused: the agent skips them and lists them in the Lease.

// EpochAnnotation is set on the agent's Lease to the counter and the lost numbers before it, such
// as "8,5-6". On objects that were created on the member it is their number. The agent writes it.
const EpochAnnotation = "fleetgate.io/member-epoch"

// maxSpans limits the number of lost ranges. Beyond it, the oldest ranges are merged, with all
// numbers in between: then more objects are retained than necessary.
const maxSpans = 16

// Epochs counts on the hub for one member. A nil Epochs counts nothing. It is safe for concurrent
// use.
type Epochs struct {
	hub   client.Client
	lease client.ObjectKey

	// calls counts the calls of Begin.
	calls atomic.Int64
	mu    sync.Mutex // guards what follows, and is held during requests to the hub
	// covered is the number of the last call that the present number covers.
	covered int64
	last    int64
	// brought return the largest number on the member; nil once they were called.
	brought []func(context.Context) (int64, error)
	// largest is the largest known number.
	largest int64
}

// NewEpochs counts in the Lease of a member's agent. The client only needs the right to patch that
// Lease.
func NewEpochs(hub client.Client, member string) *Epochs {
	return &Epochs{hub: hub, lease: client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(member), Name: clusterv1beta1.AgentLease}}
}

// RegisterLargest makes Begin first read the largest number on the member.
func (e *Epochs) RegisterLargest(largest func(context.Context) (int64, error)) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.brought = append(e.brought, largest)
}

// NumberOn returns the number of an object on the member; 0 if it has none.
func NumberOn(object metav1.Object) int64 {
	number, _, _ := strings.Cut(object.GetAnnotations()[EpochAnnotation], "/")
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}

// Begin increments the counter and returns the number for objects that are created from now on; 0
// if the hub has no Lease for this member. Calls that wait for each other share a number, because
// all of them were made before it.
func (e *Epochs) Begin(ctx context.Context) (int64, error) {
	if e == nil {
		return 0, nil
	}
	call := e.calls.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.covered >= call {
		return e.last, nil
	}
	upTo := e.calls.Load()
	for len(e.brought) > 0 {
		there, err := e.brought[0](ctx)
		if err != nil {
			return 0, fmt.Errorf("finding out which epochs are on the member: %w", err)
		}
		e.largest, e.brought = max(e.largest, there), e.brought[1:]
	}
	begun, err := e.increment(ctx)
	if err != nil {
		return 0, fmt.Errorf("beginning an epoch on the hub: %w", err)
	}
	e.last, e.largest, e.covered = begun, max(e.largest, begun), upTo
	return begun, nil
}

// increment writes the next number to the hub. The caller has the lock.
func (e *Epochs) increment(ctx context.Context) (int64, error) {
	var next count
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := e.read(ctx)
		if err != nil {
			return err
		}
		next = countIn(lease.Annotations[EpochAnnotation])
		if e.largest > next.current {
			log.FromContext(ctx).Info("The hub was restored to an earlier state; retaining newer objects that it no longer requests",
				"epochs", fmt.Sprintf("%d-%d", next.current+1, e.largest))
		}
		next = next.after(e.largest)
		before := lease.DeepCopy()
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, EpochAnnotation, next.text())
		return e.hub.Patch(ctx, lease, reconcileutil.PatchFrom(before))
	})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return next.current, err
}

// Lost reports whether the hub was restored to a state before the request for an object with this
// number. Objects of earlier versions of the agent have no number; for them it is unknown.
func (e *Epochs) Lost(ctx context.Context, number int64) (bool, error) {
	if e == nil || number == 0 {
		return false, nil
	}
	lease, err := e.read(ctx)
	if err != nil && !reconcileutil.IsGone(err) {
		return false, fmt.Errorf("reading the epoch on the hub: %w", err)
	}
	return countIn(lease.Annotations[EpochAnnotation]).lacks(number), nil
}

// read returns the Lease from the hub. It is an empty patch, which changes nothing and needs no
// additional right.
func (e *Epochs) read(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.lease.Namespace, Name: e.lease.Name}}
	return lease, e.hub.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte("{}")))
}

// count is the decoded EpochAnnotation of a Lease.
type count struct {
	current int64
	lost    []span
}

// span is a range of numbers, inclusive.
type span struct{ first, last int64 }

// countIn decodes a count. An invalid one is zero.
func countIn(text string) count {
	parts := strings.Split(text, ",")
	current, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return count{}
	}
	c := count{current: current}
	for _, part := range parts[1:] {
		first, last, _ := strings.Cut(part, "-")
		s := span{}
		if s.first, err = strconv.ParseInt(first, 10, 64); err != nil {
			return count{}
		}
		if s.last, err = strconv.ParseInt(last, 10, 64); err != nil {
			return count{}
		}
		c.lost = append(c.lost, s)
	}
	return c
}

func (c count) text() string {
	text := strconv.FormatInt(c.current, 10)
	for _, s := range c.lost {
		text += fmt.Sprintf(",%d-%d", s.first, s.last)
	}
	return text
}

// after returns the next count if numbers up to the largest were used.
func (c count) after(largest int64) count {
	if largest > c.current {
		c.lost = append(c.lost, span{c.current + 1, largest})
		c.current = largest
	}
	if over := len(c.lost) - maxSpans; over > 0 {
		c.lost[over].first = c.lost[0].first
		c.lost = c.lost[over:]
	}
	c.current++
	return c
}

// lacks reports whether the hub has lost the state in which a number was written.
func (c count) lacks(number int64) bool {
	if number > c.current {
		return true
	}
	for _, s := range c.lost {
		if s.first <= number && number <= s.last {
			return true
		}
	}
	return false
}
