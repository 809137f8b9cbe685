// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
)

// rejecting is a member that rejects server-side applies until it gets another patch.
type rejecting struct {
	with    error
	sent    []types.PatchType
	patches []string
	answer  *unstructured.Unstructured
}

func (r *rejecting) respond(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	r.sent = append(r.sent, patch.GetPatchType())
	if patch.GetPatchType() != types.ApplyPatchType {
		r.with = nil
		r.patches = append(r.patches, string(patch.GetPatch()))
	}
	return true, r.answer, r.with
}

func TestServerSide_MergesWhatAnApplyCannotRemove(t *testing.T) {
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns, name: web, uid: u, resourceVersion: '7'}, spec: "
	const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: ns, name: web, uid: u, resourceVersion: '7'}, spec: "
	forbidden := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web",
		field.ErrorList{field.Forbidden(field.NewPath("spec", "strategy", "rollingUpdate"), "not allowed with strategy Recreate")})
	isNull := apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "web",
		field.ErrorList{field.TypeInvalid(field.NewPath("spec", "sync"), "null", "spec.sync in body must be of type object")})
	ours := ownedBy("us", metav1.ManagedFieldsOperationApply, "apps/v1", `{"f:spec":{"f:replicas":{}}}`)
	oursOfWidget := ownedBy("us", metav1.ManagedFieldsOperationApply, "example.com/v1", `{"f:spec":{"f:sync":{"f:heal":{}}}}`)
	theirs := ownedBy("kubectl-edit", metav1.ManagedFieldsOperationUpdate, "apps/v1", `{"f:spec":{"f:strategy":{"f:rollingUpdate":{}}}}`)
	theirsOfWidget := ownedBy("kubectl-edit", metav1.ManagedFieldsOperationUpdate, "example.com/v1", `{"f:spec":{"f:colour":{}}}`)
	for name, tc := range map[string]struct {
		manifest, live string
		managed        []metav1.ManagedFieldsEntry
		force          bool
		rejection      error
		want           []types.PatchType
		wantPatch      string // a part of it
	}{
		"default of another strategy": {
			manifest: deployment + "{replicas: 1, strategy: {type: Recreate}}}",
			live:     deployment + "{replicas: 1, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%}}}}",
			managed:  []metav1.ManagedFieldsEntry{ours}, rejection: forbidden,
			want:      []types.PatchType{types.ApplyPatchType, types.StrategicMergePatchType, types.ApplyPatchType},
			wantPatch: `"rollingUpdate":null`,
		},
		"strategy of another manager": {
			manifest: deployment + "{strategy: {type: Recreate}}}",
			live:     deployment + "{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%}}}}",
			managed:  []metav1.ManagedFieldsEntry{ours, theirs}, rejection: forbidden,
			want: []types.PatchType{types.ApplyPatchType},
		},
		"strategy of another manager, with force": {
			manifest: deployment + "{strategy: {type: Recreate}}}",
			live:     deployment + "{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%}}}}",
			managed:  []metav1.ManagedFieldsEntry{ours, theirs}, rejection: forbidden, force: true,
			want:      []types.PatchType{types.ApplyPatchType, types.StrategicMergePatchType, types.ApplyPatchType},
			wantPatch: `"rollingUpdate":null`,
		},
		"invalid manifest": {
			manifest: deployment + "{replicas: 1}}", live: deployment + "{replicas: 1}}",
			managed: []metav1.ManagedFieldsEntry{ours}, rejection: forbidden,
			want: []types.PatchType{types.ApplyPatchType},
		},
		"map that becomes empty": {
			manifest: widget + "{sync: {}}}", live: widget + "{sync: {heal: true}}}",
			managed:   []metav1.ManagedFieldsEntry{oursOfWidget},
			want:      []types.PatchType{types.MergePatchType, types.ApplyPatchType},
			wantPatch: `"sync":{"heal":null}`,
		},
		"map that keeps an empty list only": {
			manifest: widget + "{sync: {names: []}}}", live: widget + "{sync: {heal: true}}}",
			managed:   []metav1.ManagedFieldsEntry{oursOfWidget},
			want:      []types.PatchType{types.MergePatchType, types.ApplyPatchType},
			wantPatch: `"sync":{"heal":null,"names":[]}`,
		},
		"map that becomes empty beside fields of others": {
			manifest: widget + "{sync: {}}}", live: widget + "{colour: red, sync: {heal: true}}}",
			managed: []metav1.ManagedFieldsEntry{oursOfWidget, theirsOfWidget}, rejection: isNull,
			want:      []types.PatchType{types.ApplyPatchType, types.MergePatchType, types.ApplyPatchType},
			wantPatch: `"sync":{"heal":null}`,
		},
		"empty map that has fields of others": {
			manifest: widget + "{sync: {}}}", live: widget + "{sync: {theirs: true}}}",
			managed: []metav1.ManagedFieldsEntry{oursOfWidget},
			want:    []types.PatchType{types.ApplyPatchType},
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := objectOfYAML(t, tc.live)
			live.SetManagedFields(tc.managed)
			live.SetOwnerReferences([]metav1.OwnerReference{recordRef("us", "1")})
			e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
			member := &rejecting{with: tc.rejection, answer: live}
			e.member.(*fake.FakeDynamicClient).PrependReactor("patch", "*", member.respond)
			desired := objectOfYAML(t, tc.manifest)
			desired.SetUID("")
			desired.SetResourceVersion("")
			it := Item{object: desired, namespaced: true, Mode: Mode{Method: ServerSide, Force: tc.force},
				resource: schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "r"}}
			it.Ref.Namespace, it.Ref.Name = "ns", "web"
			_, err := e.serverSide(t.Context(), work, it, desired.DeepCopy(), live)
			if rejected := len(tc.want) == 1 && tc.rejection != nil; rejected != (err != nil) {
				t.Errorf("error is %v", err)
			}
			if diff := cmp.Diff(tc.want, member.sent); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
			if tc.wantPatch != "" && !strings.Contains(strings.Join(member.patches, ""), tc.wantPatch) {
				t.Errorf("patches are %q, want %s", member.patches, tc.wantPatch)
			}
		})
	}
}

// A CustomResourceDefinition without a conversion webhook can have a version that lacks a field of another one.
func TestServerSide_OwnsFieldsInTheVersionOfTheManifest(t *testing.T) {
	const manifest = "{apiVersion: example.com/v2, kind: Widget, metadata: {namespace: ns, name: web}, spec: {colour: red}}"
	live := objectOfYAML(t, manifest)
	live.SetResourceVersion("7")
	live.SetOwnerReferences([]metav1.OwnerReference{recordRef("us", "1")})
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		ownedBy("us", metav1.ManagedFieldsOperationApply, "example.com/v1", `{"f:spec":{"f:size":{}}}`),
		ownedBy("theirs", metav1.ManagedFieldsOperationApply, "example.com/v1", `{"f:spec":{"f:weight":{}}}`)})
	e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
	member := &rejecting{with: apierrors.NewInternalError(errors.New("failed to prune fields: .spec.colour: field not declared in schema")), answer: live}
	e.member.(*fake.FakeDynamicClient).PrependReactor("patch", "*", member.respond)
	e.member.(*fake.FakeDynamicClient).PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, live.DeepCopy(), nil })
	desired := objectOfYAML(t, manifest)
	it := Item{object: desired, namespaced: true, Mode: Mode{Method: ServerSide}, resource: schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}}
	it.Ref.Namespace, it.Ref.Name = "ns", "web"
	if _, err := e.serverSide(t.Context(), work, it, desired.DeepCopy(), live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]types.PatchType{types.ApplyPatchType, types.JSONPatchType, types.ApplyPatchType}, member.sent); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
	patch := strings.Join(member.patches, "")
	if strings.Count(patch, "example.com/v2") != 1 || strings.Count(patch, "example.com/v1") != 1 {
		t.Errorf("patch is %s, want our fields in v2 and those of others in v1", patch)
	}
}

func TestWithoutClients(t *testing.T) {
	ours := ownedBy("us", metav1.ManagedFieldsOperationApply, "v1", `{"f:data":{"f:a":{},"f:b":{}}}`)
	client := func(fields string) metav1.ManagedFieldsEntry {
		return ownedBy("kubectl-client-side-apply", metav1.ManagedFieldsOperationUpdate, "v1", fields)
	}
	controller := ownedBy("operator", metav1.ManagedFieldsOperationUpdate, "v1", `{"f:data":{"f:a":{}}}`)
	status := client(`{"f:data":{"f:a":{}}}`)
	status.Subresource = "status"
	for name, tc := range map[string]struct{ entries, want []metav1.ManagedFieldsEntry }{
		"fields that both applied": {
			[]metav1.ManagedFieldsEntry{client(`{"f:data":{".":{},"f:a":{},"f:c":{}}}`), ours},
			[]metav1.ManagedFieldsEntry{client(`{"f:data":{".":{},"f:c":{}}}`), ours}},
		"only such fields":      {[]metav1.ManagedFieldsEntry{client(`{"f:data":{"f:a":{}}}`), ours}, []metav1.ManagedFieldsEntry{ours}},
		"other fields":          {[]metav1.ManagedFieldsEntry{client(`{"f:data":{"f:c":{}}}`), ours}, nil},
		"fields of controllers": {[]metav1.ManagedFieldsEntry{controller, ours}, nil},
		"subresources":          {[]metav1.ManagedFieldsEntry{status, ours}, nil},
		"nothing applied yet":   {[]metav1.ManagedFieldsEntry{client(`{"f:data":{"f:a":{}}}`)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := withoutClients(tc.entries, "us")
			if changed != (tc.want != nil) {
				t.Fatalf("changed is %t", changed)
			}
			if !changed {
				return
			}
			if diff := cmp.Diff(textOf(tc.want), textOf(got)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

func textOf(entries []metav1.ManagedFieldsEntry) []string {
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Manager+" "+entry.FieldsV1.GetRawString())
	}
	return all
}
