// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func ExampleKey() {
	before, err := manifest.Decode([]byte(`{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"namespace": "shop", "name": "a"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	after := before.DeepCopy()
	after.SetAPIVersion("example.com/v2")
	fmt.Println(manifest.Of(after), manifest.Of(before) == manifest.Of(after))
	// Output: Widget.example.com shop/a true
}
