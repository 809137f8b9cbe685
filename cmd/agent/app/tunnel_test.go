// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

func TestATunnelIsOpenedByTheRightInTheNamespaceAndByTheFormerOneOnlyWhereThatIsNotKnown(t *testing.T) {
	answers := func(code int) error {
		return fmt.Errorf("opening a tunnel: %w", &tunnel.HubError{StatusCode: code})
	}
	away := errors.New("no route")
	tests := map[string]struct {
		now, former error
		// dialed is how many ways were tried; err is what came of it.
		dialed int
		err    error
		told   bool
	}{
		"a gateway of this version":                   {nil, nil, 1, nil, true},
		"one of the version before":                   {answers(http.StatusBadRequest), nil, 2, nil, false},
		"a hub whose Role is of the version before":   {answers(http.StatusForbidden), nil, 2, nil, false},
		"a hub that does not serve the API yet":       {answers(http.StatusNotFound), answers(http.StatusNotFound), 2, answers(http.StatusNotFound), false},
		"a hub that does not let this agent in":       {answers(http.StatusForbidden), answers(http.StatusForbidden), 2, answers(http.StatusForbidden), false},
		"a gateway of before that does not let it in": {answers(http.StatusBadRequest), answers(http.StatusForbidden), 2, answers(http.StatusForbidden), false},
		"a credential that is refused":                {answers(http.StatusUnauthorized), nil, 1, answers(http.StatusUnauthorized), false},
		"a gateway that is down":                      {answers(http.StatusServiceUnavailable), nil, 1, answers(http.StatusServiceUnavailable), false},
		"a hub that is away":                          {away, nil, 1, away, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dialed, told := 0, false
			way := func(err error) func(context.Context) (net.Conn, error) {
				return func(context.Context) (net.Conn, error) {
					dialed++
					if err != nil {
						return nil, err
					}
					here, there := net.Pipe()
					_ = there.Close()
					return here, nil
				}
			}
			road := &hubRoad{now: way(tc.now), former: way(tc.former), byNamespace: func() { told = true }}
			conn, err := road.dial(t.Context())
			if (conn == nil) == (tc.err == nil) || fmt.Sprint(err) != fmt.Sprint(tc.err) {
				t.Errorf("got %v, %v, want error %v", conn, err, tc.err)
			}
			if dialed != tc.dialed || told != tc.told {
				t.Errorf("tried %d ways, told: %t", dialed, told)
			}
		})
	}
}
