// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

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
	asked                    int
	silent, refused, failing []string
	why                      string
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

// late notes a member whose list broke off.
func (t *tally) late(member string) {
	if !slices.Contains(t.silent, member) {
		t.silent = append(t.silent, member)
	}
}

// recovered takes back what was noted of a member that has answered by now.
func (t *tally) recovered(member string) {
	for _, of := range []*[]string{&t.silent, &t.refused, &t.failing} {
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
func (t *tally) warnings(deadline time.Duration, what string) (all []string) {
	for _, w := range []struct {
		members []string
		text    string
	}{
		{t.silent, fmt.Sprintf("did not answer within %v", deadline)},
		{t.refused, "do not let you " + what},
		{t.failing, "failed (" + t.why + ")"},
	} {
		if len(w.members) == 0 {
			continue
		}
		slices.Sort(w.members)
		all = append(all, fmt.Sprintf("%d of %d members %s: %s", len(w.members), t.asked, w.text, named(w.members)))
	}
	return append(all, t.said...)
}

func named(members []string) string {
	if len(members) <= maxNamed {
		return strings.Join(members, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(members[:maxNamed], ", "), len(members)-maxNamed)
}

// printable makes a text of a member fit for a header.
func printable(s string) string { return clustergateway.Printable(s, maxText) }
