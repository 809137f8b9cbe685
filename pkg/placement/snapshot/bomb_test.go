// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"testing"

	"fleetgate.io/fleetgate/test/support/bomb"
)

// Authors of ConfigMaps in a placed namespace write envelopes, if ConfigMap envelopes are enabled.
func TestContents_RejectsEnvelopeWithExpandingAliases(t *testing.T) {
	bomb.Check(t, func() {
		group := &Group{}
		manifest := configMapEnvelope("shop", "a: "+quoted(bomb.Secret()))
		if err := group.add(snapshotOf(manifest, service), Envelopes{ConfigMaps: true}); err != nil {
			t.Fatal(err)
		}
		if group.Fault == nil || !strings.Contains(group.Fault.Error(), "with what its aliases repeat") {
			t.Errorf("fault = %v", group.Fault)
		}
	})
}

// Many entries that are each within bounds must not add up to what one entry cannot have.
func TestContents_RejectsEnvelopeOfManySmallBombs(t *testing.T) {
	entries := []string{"a: " + quoted(quota)}
	for i := range 300 {
		name := string(rune('a'+i/26)) + string(rune('a'+i%26))
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\nx: &x " + strings.Repeat("x", 1000) + "\ny: [" + strings.Repeat("*x,", 700) + "]\n"
		entries = append(entries, `"`+name+`": `+quoted(text))
	}
	bomb.Check(t, func() {
		group := &Group{}
		if err := group.add(snapshotOf(configMapEnvelope("shop", strings.Join(entries, ",")), service), Envelopes{ConfigMaps: true}); err != nil {
			t.Fatal(err)
		}
		if group.Fault == nil {
			t.Error("the envelope was opened")
		}
	})
}
