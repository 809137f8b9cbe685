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

// Whether a ManifestWork or a ManagedServiceAccount that the hub has no more was deleted, or
// is lost since the hub went back, nothing of it can tell: it is not there. So the agent
// counts on the hub, in its own Lease. Before something is brought that was not on the member
// before, it counts on there, and notes the number beside what it brings. A hub whose count
// lacks a number went back behind what asked for that. Nobody else writes the count, so no
// hub gets further by itself, however long the agent is away.
//
// Numbers that a hub lost are not used again: an agent that finds that there are some skips
// them, and has the Lease say which these are.

// EpochAnnotation is on the agent's Lease: the count, and which numbers before it were lost,
// such as "8,5-6"; and on what was brought to the member: the number that it has. The agent
// writes it.
const EpochAnnotation = "fleetgate.io/member-epoch"

// maxSpans bounds how many spans of lost numbers are told apart. What lies between two of them
// counts as lost, too, once there are more: more is held then.
const maxSpans = 16

// Epochs count on the hub for one member. Nil is a hub where nobody counts. It is safe for
// concurrent use.
type Epochs struct {
	hub   client.Client
	lease client.ObjectKey

	// calls counts those of Begin.
	calls atomic.Int64
	mu    sync.Mutex // guards what follows, and is held while the hub is asked
	// covered is up to which call the last number was begun.
	covered int64
	last    int64
	// brought are asked for the largest number on the member; nil once they were.
	brought []func(context.Context) (int64, error)
	// largest is that number, as far as it is known.
	largest int64
}

// NewEpochs counts in the Lease of a member's agent. The client needs to be allowed to patch
// that, and nothing else.
func NewEpochs(hub client.Client, member string) *Epochs {
	return &Epochs{hub: hub, lease: client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(member), Name: clusterv1beta1.AgentLease}}
}

// Brought has Begin ask first for the largest number among what is on the member already.
func (e *Epochs) Brought(largest func(context.Context) (int64, error)) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.brought = append(e.brought, largest)
}

// NumberOn is the number that something on the member has; 0 for what has none.
func NumberOn(object metav1.Object) int64 {
	number, _, _ := strings.Cut(object.GetAnnotations()[EpochAnnotation], "/")
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}

// Begin counts on, and returns the number of what is brought from now on; 0 where the hub has
// no Lease for this member. Calls that wait for each other share a number: what they bring
// was asked for before.
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
	begun, err := e.countOn(ctx)
	if err != nil {
		return 0, fmt.Errorf("beginning an epoch on the hub: %w", err)
	}
	e.last, e.largest, e.covered = begun, max(e.largest, begun), upTo
	return begun, nil
}

// countOn writes the next number on the hub. The caller has the lock.
func (e *Epochs) countOn(ctx context.Context) (int64, error) {
	var next count
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := e.read(ctx)
		if err != nil {
			return err
		}
		next = countIn(lease.Annotations[EpochAnnotation])
		if e.largest > next.current {
			log.FromContext(ctx).Info("The hub has gone back to an earlier state: what was brought since is held where nobody asks for it any more",
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

// Lost reports whether the hub went back behind what asked for something with a number. What
// has none was brought by an agent of before: of it that is not known.
func (e *Epochs) Lost(ctx context.Context, number int64) (bool, error) {
	if e == nil || number == 0 {
		return false, nil
	}
	lease, err := e.read(ctx)
	if err != nil && !reconcileutil.IsGone(err) {
		return false, fmt.Errorf("asking the hub whether it went back: %w", err)
	}
	return countIn(lease.Annotations[EpochAnnotation]).lacks(number), nil
}

// read is the Lease as it is on the hub. A patch that changes nothing is no write, and needs
// no other right than those that do.
func (e *Epochs) read(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.lease.Namespace, Name: e.lease.Name}}
	return lease, e.hub.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte("{}")))
}

// count is what EpochAnnotation says of a hub.
type count struct {
	current int64
	lost    []span
}

// span are numbers, the first and the last included.
type span struct{ first, last int64 }

// countIn reads a count; what cannot be read is none.
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

// after is the count once it goes on where numbers up to the largest were used.
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

// lacks reports whether the state of the hub in which a number was begun is lost.
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
