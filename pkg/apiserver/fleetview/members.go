// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

// follow starts to follow a member from the watch's position.
func (wa *watch) follow(ctx context.Context, q question) {
	ctx, cancel := context.WithCancel(ctx)
	version := wa.trail.at(q.member)
	q.narrow = len(wa.x.members) > wide
	f := &follower{
		watch: wa, question: q, version: version, out: wa.lines.Member(q.member), cancel: cancel, left: make(chan struct{}),
		patience: wa.x.deadline, pause: againAfter,
		memory: newMemory(&wa.h.remembered, version == ""),
	}
	wa.followed[q.member] = f
	wa.fanout.group.Go(func() {
		defer close(f.left)
		f.run(ctx)
	})
}

// forget releases the memory budget of the watch.
func (wa *watch) forget() {
	for _, f := range wa.followed {
		f.memory.drop()
	}
}

// check ends the watch if the caller has lost the view, and updates its members. The objects of new
// members are sent as ADDED, those of members that left as DELETED.
func (wa *watch) check(watching context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(watching, checkTimeout)
	defer cancel()
	decision, _, err := wa.h.hub.Reviews.Authorize(ctx, wa.caller)
	if err != nil {
		return nil, wa.undecided(err)
	}
	if decision != authorizer.DecisionAllow {
		return nil, apierrors.NewForbidden(viewResource, wa.x.request.view, errors.New("the right to it was taken away"))
	}
	view, err := wa.h.viewOf(ctx, wa.x.request.view)
	if err != nil {
		return nil, err
	}
	if view.qualified != wa.x.view.qualified {
		return nil, apierrors.NewResourceExpired("the view shows other names now: list again")
	}
	members, err := wa.h.reachable(ctx, wa.h.hub.Reviews, wa.caller, wa.h.members(view))
	if err != nil {
		return nil, wa.undecided(err)
	}
	wa.decided = time.Now()
	if slices.Equal(members, wa.x.members) {
		return nil, nil
	}
	return wa.setMembers(watching, members)
}

// undecided returns an error, which ends the watch, if the hub has not decided for too long. A
// restart of the hub does not end everybody's watches.
func (wa *watch) undecided(why error) error {
	if time.Since(wa.decided) < clustergateway.MaxUnreviewed {
		return nil
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the hub has not decided for %v whether the watch may continue: %v", clustergateway.MaxUnreviewed, why))
}

// setMembers replaces the members of the watch.
func (wa *watch) setMembers(ctx context.Context, members []string) ([]byte, error) {
	wa.x.members = members
	questions, err := wa.x.questions(wa.header)
	if err != nil {
		return nil, err
	}
	current := map[string]question{}
	for _, q := range questions {
		current[q.member] = q
	}
	var lines []byte
	for member, f := range wa.followed {
		if _, stays := current[member]; stays {
			continue
		}
		gone, err := wa.leave(ctx, f)
		if err != nil {
			return lines, err
		}
		lines = append(lines, gone...)
	}
	wa.trail.setMembers(members)
	for _, q := range questions {
		if wa.followed[q.member] == nil {
			wa.follow(ctx, q)
		}
	}
	return append(lines, wa.beginning()...), nil
}

// leave stops following a member and returns the DELETED events of its objects. A watch that was
// resumed does not know them: its caller lists again.
func (wa *watch) leave(ctx context.Context, f *follower) ([]byte, error) {
	member := f.question.member
	f.cancel()
	if f.listing {
		wa.listing--
	}
	for waiting := true; waiting; {
		select {
		case <-f.left:
			waiting = false
		case <-ctx.Done():
			return nil, nil
		}
	}
	if !f.memory.whole {
		return nil, errExpired(member, "has left")
	}
	lines, err := wa.gone(f, f.memory.forget(true))
	delete(wa.followed, member)
	delete(wa.firstReplies, member)
	return lines, err
}

// gone are the DELETED events for objects of a member.
func (wa *watch) gone(f *follower, all []splice.Identity) ([]byte, error) {
	slices.SortFunc(all, func(a, b splice.Identity) int { return strings.Compare(keyOf(a), keyOf(b)) })
	var lines []byte
	for _, of := range all {
		line, err := f.out.Gone(of, wa.kind, wa.apiVersion, wa.trail.step(f.question.member, ""))
		if err != nil {
			return nil, badGateway(f.question.member, err)
		}
		lines = append(lines, line...)
	}
	return lines, nil
}
