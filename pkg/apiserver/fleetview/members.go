// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// join starts to read a member from the watch's position.
func (wa *watch) join(ctx context.Context, request memberRequest) {
	request.narrow = len(wa.x.members) > wide
	r := &reader{
		request: request, fanout: wa.fanout, events: wa.events, reachable: wa.reachable, version: wa.merger.join(request.member),
	}
	wa.readers[request.member] = r
	r.start(ctx)
}

// reachable is false if the hub has decided that the caller cannot reach the member any more.
func (wa *watch) reachable(ctx context.Context, member string) bool {
	members, err := wa.h.reachable(ctx, wa.h.hub.Reviews, wa.caller, []string{member})
	return err != nil || len(members) > 0
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
		return nil, apierrors.NewForbidden(viewResource, wa.x.request.view, errors.New("the right to it was revoked"))
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
func (wa *watch) undecided(reason error) error {
	if time.Since(wa.decided) < clustergateway.MaxUnreviewed {
		return nil
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the hub has not decided for %v whether the watch may continue: %v", clustergateway.MaxUnreviewed, reason))
}

// setMembers replaces the members of the watch.
func (wa *watch) setMembers(ctx context.Context, members []string) ([]byte, error) {
	wa.x.members = members
	requests, err := wa.x.memberRequests(wa.header)
	if err != nil {
		return nil, err
	}
	current := map[string]bool{}
	for _, request := range requests {
		current[request.member] = true
	}
	var lines []byte
	for member, r := range wa.readers {
		if current[member] {
			continue
		}
		gone, err := wa.leave(ctx, r)
		if err != nil {
			return lines, err
		}
		lines = append(lines, gone...)
	}
	wa.merger.trail.setMembers(members)
	for _, request := range requests {
		if wa.readers[request.member] == nil {
			wa.join(ctx, request)
		}
	}
	return append(lines, wa.merger.beginning()...), nil
}

// leave stops reading a member and returns the DELETED events of its objects.
func (wa *watch) leave(ctx context.Context, r *reader) ([]byte, error) {
	r.cancel()
	select {
	case <-r.stopped:
	case <-ctx.Done():
		return nil, nil
	}
	delete(wa.readers, r.request.member)
	return wa.merger.leave(r.request.member)
}
