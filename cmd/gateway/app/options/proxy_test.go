// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestAuthorizeMemberRequests_HasItsPreviousName(t *testing.T) {
	for _, name := range []string{"authorize-member-requests", "authorize-inner"} {
		o := newProxy()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(flags)
		if err := flags.Parse([]string{"--" + name}); err != nil || !o.AuthorizeMemberRequests {
			t.Errorf("--%s: %v, %t", name, err, o.AuthorizeMemberRequests)
		}
	}
}
