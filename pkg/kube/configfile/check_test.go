// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestChecks_RejectWithPath(t *testing.T) {
	at := field.NewPath("a")
	for want, got := range map[string]field.ErrorList{
		"": append(append(OneOf(at, "x", "x"), Loopback(at, "0")...), Together(at, "both", true, true)...),
		`[a: Unsupported value: "y": supported values: "x"]`:        OneOf(at, "y", "x"),
		"[a: Required value: choose from x, z]":                     SomeOf(at, nil, []string{"x", "z"}),
		"[a[1]: Unsupported value: \"y\": supported values: \"x\"]": SomeOf(at, []string{"x", "y"}, []string{"x"}),
		"[a: Invalid value: 0: must be between 1 and 65535]":        Port(at, 0),
		`[a: Invalid value: "0": must be host:port]`:                Address(at, "0", false),
		`[a: Invalid value: ":6060": must be a loopback address such as 127.0.0.1:6060, because the endpoint has no authentication]`: Loopback(at, ":6060"),
		"[a: Forbidden: has no effect without b]": Without(at, true, "b"),
		"[a: Forbidden: both]":                    Together(at, "both", true, false),
	} {
		text := ""
		if err := got.ToAggregate(); err != nil {
			text = "[" + err.Error() + "]"
		}
		if text != want {
			t.Errorf("got %s, want %s", text, want)
		}
	}
}
