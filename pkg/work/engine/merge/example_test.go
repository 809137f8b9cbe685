// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/work/engine/merge"
)

func ExampleMerger_ThreeWay() {
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	patch, err := merge.Merger{Known: runtime.NewScheme()}.ThreeWay(widget,
		[]byte(`{"spec":{"size":1,"color":"red"}}`),
		[]byte(`{"spec":{"size":2}}`),
		[]byte(`{"metadata":{"resourceVersion":"7"},"spec":{"size":1,"color":"red","theirs":true}}`))
	fmt.Println(string(patch.Data), err)
	// Output: {"metadata":{"resourceVersion":"7"},"spec":{"color":null,"size":2}} <nil>
}
