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

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

const (
	// maxNamed is how many members a warning names; the others it counts.
	maxNamed = 20
	// maxText bounds a text of a member.
	maxText = 512
)

// tally is what became of the members of one request.
type tally struct {
	asked int
	// silent said nothing in time, unwell that they cannot answer now, refused that the
	// caller may not, failing anything else.
	silent, unwell, refused, failing []string
	why                              string
	// ailment, forbidden and failure are what the first of those said that said something,
	// missing what the first did that has no such thing.
	ailment, forbidden, failure, missing *metav1.Status
	// said are the texts of members' own warnings, each once.
	said []string
}

const (
	// maxSaid is how many warnings of members are passed on, maxHeard how many are read of
	// one member.
	maxSaid  = 8
	maxHeard = 8
)

// say notes the warnings that a member sent itself: of a version that is to go, mostly, and
// so the same for many.
func (t *tally) say(of http.Header) {
	values := of.Values("Warning")
	warnings, _ := utilnet.ParseWarningHeaders(values[:min(len(values), maxHeard)])
	for _, w := range warnings {
		if text := printable(w.Text); text != "" && len(t.said) < maxSaid && !slices.Contains(t.said, text) {
			t.said = append(t.said, text)
		}
	}
}

// without notes a member that gave nothing.
func (t *tally) without(of *reply) {
	switch code := of.code; {
	case errors.Is(of.err, errSilent):
		t.silent = append(t.silent, of.member)
	case code == http.StatusForbidden:
		t.refused, t.forbidden = append(t.refused, of.member), first(t.forbidden, of)
	case code == http.StatusNotFound:
		t.missing = first(t.missing, of)
	case code >= 500 || code == http.StatusTooManyRequests:
		t.unwell, t.ailment = append(t.unwell, of.member), first(t.ailment, of)
	default:
		t.failing, t.failure = append(t.failing, of.member), first(t.failure, of)
		t.why = t.failure.Message
	}
}

func first(before *metav1.Status, of *reply) *metav1.Status {
	if before != nil {
		return before
	}
	return of.status()
}

// late notes a member whose list broke off.
func (t *tally) late(member string) {
	if !slices.Contains(t.unread(), member) {
		t.silent = append(t.silent, member)
	}
}

// unread are the members of which is not known what they have.
func (t *tally) unread() []string { return slices.Concat(t.silent, t.unwell) }

// recovered takes back what was noted of a member that has answered by now.
func (t *tally) recovered(member string) {
	for _, of := range []*[]string{&t.silent, &t.unwell, &t.refused, &t.failing} {
		*of = slices.DeleteFunc(*of, func(m string) bool { return m == member })
	}
}

// warn says in headers what an answer does not hold.
func (t *tally) warn(h http.Header, deadline time.Duration, what string) {
	for _, text := range t.warnings(deadline, what) {
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			h.Add("Warning", header)
		}
	}
}

// warnings are what an answer does not hold, and what members had to say, as sentences.
func (t *tally) warnings(deadline time.Duration, what string) []string {
	all := t.unanswered(deadline)
	all = t.count(all, t.refused, "do not let you "+what)
	all = t.count(all, t.failing, "failed ("+t.why+")")
	return append(all, t.said...)
}

// unanswered are the sentences about those of which is not known what they have.
func (t *tally) unanswered(deadline time.Duration) []string {
	all := t.count(nil, t.silent, fmt.Sprintf("did not answer within %v", deadline))
	if t.ailment == nil {
		return all
	}
	return t.count(all, t.unwell, fmt.Sprintf("could not answer (%d, %s)", t.ailment.Code, t.ailment.Message))
}

// count appends a sentence about members, if there are any.
func (t *tally) count(all, members []string, text string) []string {
	if len(members) == 0 {
		return all
	}
	slices.Sort(members)
	return append(all, fmt.Sprintf("%d of %d members %s: %s", len(members), t.asked, text, named(members)))
}

func named(members []string) string {
	if len(members) <= maxNamed {
		return strings.Join(members, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(members[:maxNamed], ", "), len(members)-maxNamed)
}

// printable makes a text of a member fit for a header.
func printable(s string) string { return clustergateway.Printable(s, maxText) }
