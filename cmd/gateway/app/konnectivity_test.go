// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

func TestExpiryOf(t *testing.T) {
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for name, test := range map[string]struct {
		token string
		want  time.Time
	}{
		"a token's own time":     {jwt(`{"exp": 1800000000, "sub": "x"}`), time.Unix(1_800_000_000, 0)},
		"none in the token":      {jwt(`{"sub": "x"}`), time.Time{}},
		"a time before all time": {jwt(`{"exp": -1}`), time.Time{}},
		"a text for a number":    {jwt(`{"exp": "soon"}`), time.Time{}},
		"not JSON":               {"e30.bm9uZQ.c2ln", time.Time{}},
		"not base64":             {"a.?.c", time.Time{}},
		"not a JWT":              {"opaque", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expiryOf(test.token); !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestARightToDialIsAskedForByMember(t *testing.T) {
	attributes := dialOf(konnectivity.Identity{Name: "u", Groups: []string{"g"}}, "m").(authorizer.AttributesRecord)
	got := []string{attributes.Verb, attributes.APIGroup, attributes.Resource, attributes.Subresource, attributes.Name, attributes.User.GetName()}
	if diff := cmp.Diff([]string{"create", "tunnel.fleetgate.io", "tunnels", "dial", "m", "u"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"g", "system:authenticated"}, attributes.User.GetGroups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestABundleWithoutACertificateIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&caBundle{path: path}).pool(); err == nil {
		t.Error("it was taken for a bundle")
	}
}

func TestTheCertificateIsForTheNamesThatKonnectivityVerifies(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*options.Options)
		want   []string
	}{
		"no Konnectivity": {func(o *options.Options) { o.Tunnels.AgentsAddress = "agents.example:8091" }, nil},
		"agents at a name": {func(o *options.Options) {
			o.Tunnels.AgentsAddress, o.Tunnels.Konnectivity.Agents = "agents.example:8091", true
		}, []string{"agents.example"}},
		"agents at an address": {func(o *options.Options) {
			o.Tunnels.AgentsAddress, o.Tunnels.Konnectivity.Agents = "10.0.0.1:8091", true
		}, nil},
		"frontends of a member": {func(o *options.Options) {
			o.Tunnels.Konnectivity.Frontends, o.Tunnels.Konnectivity.Domain = ":8090", ".fleet.example"
		}, []string{"*.fleet.example"}},
		"a domain that nobody is served at": {func(o *options.Options) { o.Tunnels.Konnectivity.Domain = "fleet.example" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			given := options.New()
			test.change(given)
			g := &gateway{Config: &options.Config{Options: *given}}
			if diff := cmp.Diff(test.want, g.konnectivityNames()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATokenThatIsShownAgainIsNotAskedAboutAgain(t *testing.T) {
	asked := map[string]int{}
	identify := remembering(func(_ context.Context, token string) (konnectivity.Identity, bool, error) {
		asked[token]++
		if token == "broken" {
			return konnectivity.Identity{}, false, errors.New("the hub is away")
		}
		return konnectivity.Identity{Name: "u", Groups: []string{"g"}}, token == "good", nil
	})
	for range 3 {
		id, ok, err := identify(t.Context(), "good")
		if err != nil || !ok || id.Name != "u" || len(id.Groups) != 1 {
			t.Errorf("a good token: %+v, %v, %v", id, ok, err)
		}
		if _, ok, err := identify(t.Context(), "bad"); ok || err != nil {
			t.Errorf("a bad token: %v, %v", ok, err)
		}
		if _, _, err := identify(t.Context(), "broken"); err == nil {
			t.Error("that nobody could tell was no error")
		}
	}
	// What could not be found out is asked again.
	if diff := cmp.Diff(map[string]int{"good": 1, "bad": 1, "broken": 3}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}
