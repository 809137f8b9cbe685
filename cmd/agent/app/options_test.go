// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"
)

func TestValidateReportsEveryErrorAtOnce(t *testing.T) {
	external := func(change func(*Options)) func(*Options) {
		return func(o *Options) {
			o.MemberName, o.HubURL, o.HubTokenFile = "edge", "https://hub", "/config/token"
			change(o)
		}
	}
	tests := map[string]struct {
		change func(*Options)
		want   []string
	}{
		"the defaults":              {func(*Options) {}, nil},
		"an identity that is given": {external(func(*Options) {}), nil},
		"a kubeconfig of the hub":   {func(o *Options) { o.MemberName, o.HubKubeconfig = "edge", "hub.kubeconfig" }, nil},
		"two bootstraps":            {func(o *Options) { o.BootstrapFile, o.BootstrapKubeconfig = "a", "b" }, []string{"--bootstrap-kubeconfig"}},
		"a hub without a member":    {func(o *Options) { o.HubURL = "https://hub" }, []string{"--member-name"}},
		"a member without a hub":    {func(o *Options) { o.MemberName = "edge" }, []string{"either --hub-url or --hub-kubeconfig"}},
		"two ways to the hub":       {external(func(o *Options) { o.HubKubeconfig = "x" }), []string{"either --hub-url or --hub-kubeconfig"}},
		"no token":                  {external(func(o *Options) { o.HubTokenFile = "" }), []string{"--hub-token-file"}},
		"plain HTTP and a name too long": {external(func(o *Options) { o.HubURL, o.MemberName = "http://hub", strings.Repeat("x", 51) }),
			[]string{"--hub-url", "--member-name"}},
		"registering with a given identity": {external(func(o *Options) { o.BootstrapFile = "values.yaml" }), []string{"does not register"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := NewOptions()
			tt.change(options)
			err := options.Validate()
			if (err != nil) != (len(tt.want) > 0) {
				t.Fatalf("got %v, want problems with %v", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("no error says %q:\n%v", part, err)
				}
			}
		})
	}
}
