// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// maxNamed is how many members a warning names; it counts the others.
	maxNamed = 20
	// maxText limits a text of a member.
	maxText = 512
)

// missingMembers collects which members of one request did not return objects, and why.
type missingMembers struct {
	total int
	// late did not reply in time, unavailable cannot reply now, refused denied the caller,
	// failing had any other error.
	late, unavailable, refused, failing []string
	reason                              string
	// unavailableStatus, forbidden and failure are the first Status of each kind; missing is the
	// first of a member without the kind.
	unavailableStatus, forbidden, failure, missing *metav1.Status
	// own are the members' own warnings without duplicates.
	own []string
}

const (
	// maxWarnings is how many warnings of members are passed on, maxMemberWarnings how many are read
	// from one member.
	maxWarnings       = 8
	maxMemberWarnings = 8
)

// warned records a member's own warnings. Most are about deprecated versions, and therefore the same
// for many members.
func (t *missingMembers) warned(of http.Header) {
	values := of.Values("Warning")
	warnings, _ := utilnet.ParseWarningHeaders(values[:min(len(values), maxMemberWarnings)])
	for _, w := range warnings {
		if text := untrusted.Excerpt(w.Text, maxText); text != "" && len(t.own) < maxWarnings && !slices.Contains(t.own, text) {
			t.own = append(t.own, text)
		}
	}
}

// without records a member that returned nothing.
func (t *missingMembers) without(of *reply) {
	switch code := of.code; {
	case errors.Is(of.err, errLate):
		t.late = append(t.late, of.member)
	case code == http.StatusForbidden:
		t.refused, t.forbidden = append(t.refused, of.member), first(t.forbidden, of)
	case code == http.StatusNotFound:
		t.missing = first(t.missing, of)
	case code >= 500 || code == http.StatusTooManyRequests:
		t.unavailable, t.unavailableStatus = append(t.unavailable, of.member), first(t.unavailableStatus, of)
	default:
		t.failing, t.failure = append(t.failing, of.member), first(t.failure, of)
		t.reason = t.failure.Message
	}
}

// malformed records a member whose reply cannot be read.
func (t *missingMembers) malformed(member string, err error) {
	t.failing = append(t.failing, member)
	if t.failure == nil {
		t.failure = &badGateway(member, err).ErrStatus
	}
	t.reason = t.failure.Message
}

func first(before *metav1.Status, of *reply) *metav1.Status {
	if before != nil {
		return before
	}
	return of.status()
}

// addLate records a member whose list broke off.
func (t *missingMembers) addLate(member string) {
	if !slices.Contains(t.unread(), member) {
		t.late = append(t.late, member)
	}
}

// unread are the members whose objects are not known.
func (t *missingMembers) unread() []string { return slices.Concat(t.late, t.unavailable) }

// recovered removes the records of a member that has replied by now.
func (t *missingMembers) recovered(member string) {
	for _, of := range []*[]string{&t.late, &t.unavailable, &t.refused, &t.failing} {
		*of = slices.DeleteFunc(*of, func(m string) bool { return m == member })
	}
}

// warn writes headers that say what a response lacks.
func (t *missingMembers) warn(h http.Header, deadline time.Duration, what string) {
	for _, text := range t.warnings(deadline, what) {
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			h.Add("Warning", header)
		}
	}
}

// warnings are sentences that say what a response lacks, and the members' own warnings.
func (t *missingMembers) warnings(deadline time.Duration, what string) []string {
	all := t.unreadReasons(deadline)
	all = t.count(all, t.refused, "do not let you "+what)
	all = t.count(all, t.failing, "failed ("+t.reason+")")
	return append(all, t.own...)
}

// unreadReasons returns sentences about members whose objects are not known.
func (t *missingMembers) unreadReasons(deadline time.Duration) []string {
	all := t.count(nil, t.late, fmt.Sprintf("did not answer within %v", deadline))
	if t.unavailableStatus == nil {
		return all
	}
	return t.count(all, t.unavailable, fmt.Sprintf("could not answer (%d, %s)", t.unavailableStatus.Code, t.unavailableStatus.Message))
}

// count appends a sentence about members, if there are any.
func (t *missingMembers) count(all, members []string, text string) []string {
	if len(members) == 0 {
		return all
	}
	slices.Sort(members)
	return append(all, fmt.Sprintf("%d of %d members %s: %s", len(members), t.total, text, namesOf(members)))
}

func namesOf(members []string) string {
	if len(members) <= maxNamed {
		return strings.Join(members, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(members[:maxNamed], ", "), len(members)-maxNamed)
}
