// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

func TestAllow_MatchesOnlyListedAddresses(t *testing.T) {
	rules := []string{"db.example.com:5432", "10.0.0.0/8:10250", "192.0.2.7:*", "[fd00::/8]:443", "[2001:db8::1]:80"}
	for address, want := range map[string]bool{
		"db.example.com:5432":       true,
		"DB.example.com.:5432":      true,
		"db.example.com:5433":       false,
		"xdb.example.com:5432":      false,
		"10.1.2.3:10250":            true,
		"10.1.2.3:10251":            false,
		"11.1.2.3:10250":            false,
		"[::ffff:10.1.2.3]:10250":   true,
		"192.0.2.7:1":               true,
		"[fd00::1]:443":             true,
		"[fd00::1%eth0]:443":        false,
		"[fe80::1]:443":             false,
		"[2001:db8::1]:80":          true,
		"[2001:db8:0:0:0:0:0:1]:80": true,
		// Spellings of 10.1.2.3 that some resolvers know.
		"012.1.2.3:10250":        false,
		"0xa010203:10250":        false,
		"167838211:10250":        false,
		"10.66051:10250":         false,
		"user@10.1.2.3:10250":    false,
		"10.1.2.3:":              false,
		"10.1.2.3:+10250":        false,
		"10.1.2.3:010250":        false,
		"10.1.2.3:http":          false,
		"10.1.2.3":               false,
		":10250":                 false,
		"/var/run/docker.sock":   false,
		"unix:/var/run/x.sock":   false,
		"/var/run/docker.sock:1": false,
		"":                       false,
	} {
		if got := mustAllow(t, rules...).has(address); got != want {
			t.Errorf("%q: allowed %v, want %v", address, got, want)
		}
	}
	if (Allow{}).has("10.1.2.3:10250") {
		t.Error("nothing is allowed, and yet it is")
	}
}

func TestParseAllow_RefusesInvalidRules(t *testing.T) {
	for _, text := range []string{"", "host", "host:", "host:0", "host:65536", "host:http", "*:443", "10.0.0.0/33:1", ":443", "a b:1"} {
		if _, err := ParseAllow([]string{text}); err == nil {
			t.Errorf("%q was taken for a rule", text)
		}
	}
}

func TestAllow_DoesNotResolveToLocalHost(t *testing.T) {
	_, err := mustAllow(t, "localhost:80").resolve(context.Background(), net.DefaultResolver, "localhost:80")
	if !errors.Is(err, errNotAllowed) {
		t.Errorf("localhost was resolved: %v", err)
	}
	for _, rule := range []string{"127.0.0.0/8:80", "[::1]:80"} {
		found, err := mustAllow(t, "localhost:80", rule).resolve(context.Background(), net.DefaultResolver, "localhost:80")
		if err == nil && !found.Addr().IsLoopback() {
			t.Errorf("localhost leads to %s", found)
		}
	}
}

func TestRoute_FindsMemberAndTarget(t *testing.T) {
	const domain = "fleet.example"
	type result struct {
		Member, Target string
		Refused        bool
	}
	for _, test := range []struct {
		name, domain, serverName, address string
		want                              result
	}{
		{"the member's name", "", "gateway", "m:443", result{Member: "m", Target: tunnel.APIServer}},
		{"the member's name at any port", "", "gateway", "m:6443", result{Member: "m", Target: tunnel.APIServer}},
		{"an address names no member", "", "gateway", "10.0.0.1:10250", result{Refused: true}},
		{"an IPv6 address names no member", "", "gateway", "[fd00::1]:10250", result{Refused: true}},
		{"a name with dots names no member", "", "gateway", "db.m:443", result{Refused: true}},
		{"below the domain the server's name has the member", domain, "m.fleet.example", "10.0.0.1:10250", result{Member: "m", Target: "10.0.0.1:10250"}},
		{"IPv6 below the domain", domain, "m.fleet.example", "[fd00::1]:10250", result{Member: "m", Target: "[fd00::1]:10250"}},
		{"the API server's own name", domain, "m.fleet.example", "kubernetes.default.svc:443", result{Member: "m", Target: tunnel.APIServer}},
		{"the member's name below the domain", domain, "m.fleet.example", "m:443", result{Member: "m", Target: tunnel.APIServer}},
		{"a name two labels below the domain", domain, "x.m.fleet.example", "10.0.0.1:1", result{Refused: true}},
		{"another domain", domain, "m.other.example", "10.0.0.1:1", result{Refused: true}},
		{"another domain with the member's name", domain, "n.other.example", "m:443", result{Member: "m", Target: tunnel.APIServer}},
		{"no port", "", "gateway", "m", result{Refused: true}},
		{"a socket", domain, "m.fleet.example", "/run/x.sock", result{Refused: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			member, target, err := route(test.domain, test.serverName, test.address)
			if diff := cmp.Diff(test.want, result{member, target, err != nil}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
