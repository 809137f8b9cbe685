// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
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
}

// warn says in headers what an answer does not hold.
func (t *tally) warn(h http.Header, deadline time.Duration, what string) {
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
		text := fmt.Sprintf("%d of %d members %s: %s", len(w.members), t.asked, w.text, named(w.members))
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			h.Add("Warning", header)
		}
	}
}

func named(members []string) string {
	if len(members) <= maxNamed {
		return strings.Join(members, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(members[:maxNamed], ", "), len(members)-maxNamed)
}

// printable makes a text of a member fit for a header: one line, bounded.
func printable(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "..."
	}
	return strings.TrimSpace(s)
}
