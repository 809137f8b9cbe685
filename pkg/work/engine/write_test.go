// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
)

func TestWrite_AppliesOnTheServerWhatItCannotMerge(t *testing.T) {
	live := objectOfYAML(t, podTemplate("{future: {mode: Slow}}"))
	live.SetNamespace("ns")
	wanted := objectOfYAML(t, podTemplate("{future: {mode: Fast}}"))
	wanted.SetNamespace("ns")
	e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
	var sent []types.PatchType
	e.member.(*fake.FakeDynamicClient).PrependReactor("patch", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		sent = append(sent, action.(clienttesting.PatchAction).GetPatchType())
		return true, live, nil
	})
	text, err := wanted.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	it := Item{object: wanted, text: text, namespaced: true, Mode: Mode{Method: Merge},
		resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}}
	it.Ref.Namespace, it.Ref.Name = "ns", "web"
	if _, err := e.write(t.Context(), work, it, live); err != nil {
		t.Fatal(err)
	}
	if len(sent) != 1 || sent[0] != types.ApplyPatchType {
		t.Errorf("patches are %v, want one of server-side apply", sent)
	}
}
