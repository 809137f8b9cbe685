// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var store = flag.Bool("store", false, "write the objects that an agent leaves; run it only with the version preceding a change that must not write them")

const storedObjects = "testdata/stored.json"

// stored is the state that an agent leaves on a hub and a member.
type stored struct {
	Works   []*placementv1beta1.Work              `json:"works"`
	Objects map[string]*unstructured.Unstructured `json:"objects"` // by path
}

// The file was written by the agent as it was before the engine was cut out of this
// package. That one put values of Secrets into annotations: taking them out is the one
// write that a Secret which was merged needs, once. Nor did it remember what it saw of a Work,
// which takes a write of each record.
func TestReconcile_AdoptsObjectsOfAnEarlierAgentWithoutWrites(t *testing.T) {
	if *store {
		leaveObjects(t)
	}
	text, err := os.ReadFile(storedObjects)
	if err != nil {
		t.Fatal(err)
	}
	var left stored
	if err := json.Unmarshal(text, &left); err != nil {
		t.Fatal(err)
	}
	var works []client.Object
	for _, work := range left.Works {
		works = append(works, work)
	}
	b := newBed(t, Options{}, works...)
	b.member.objects = left.Objects
	before := map[string]string{}
	for path, object := range left.Objects {
		before[path] = object.GetResourceVersion()
	}
	for _, work := range left.Works {
		b.look(work.Name)
	}
	if looks := strings.Count(b.log.String(), "GET "); looks < len(left.Objects) {
		t.Errorf("%d objects were asked for, there are %d:\n%s", looks, len(left.Objects), b.log)
	}
	for _, line := range strings.Split(b.log.String(), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "PATCH status of Work compared on the hub") {
			continue // of a manifest that cannot be read it says DecodingErred now
		}
		if strings.Contains(line, "on the hub") || strings.Contains(line, "error") {
			t.Errorf("it is not left as it is: %s", line)
		}
	}
	var changed []string
	for path, object := range b.member.objects {
		if object.GetResourceVersion() != before[path] {
			changed = append(changed, path)
		}
		if strings.Contains(path, "/secrets/") && strings.Contains(object.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation], "aGlkZGVu") {
			t.Errorf("%s still has a value in an annotation", path)
		}
	}
	slices.Sort(changed)
	want := []string{
		"/api/v1/namespaces/cautious/secrets/s", "/api/v1/namespaces/hands-off/secrets/s",
		"/api/v1/namespaces/merged/secrets/s", "/api/v1/namespaces/thorough/secrets/s",
	}
	for _, work := range left.Works {
		want = append(want, "/apis/placement.kubernetes-fleet.io/v1beta1/appliedworks/"+work.Name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, changed); diff != "" || len(before) != len(b.member.objects) {
		t.Errorf("what is not left as it is (-want +got):\n%s\n%s", diff, b.log)
	}
	versions := b.member.versions
	for _, work := range left.Works {
		b.look(work.Name)
	}
	if b.member.versions != versions {
		t.Errorf("it is written again and again:\n%s", b.log)
	}
}

func leaveObjects(t *testing.T) {
	var works []client.Object
	for name, s := range map[string]*strategy{
		"merged":    nil,
		"applied":   {Type: placementv1beta1.ServerSideApply},
		"compared":  {Type: placementv1beta1.ReportDiff},
		"cautious":  {WhenToApply: placementv1beta1.ApplyIfNotDrifted, WhenToTakeOver: placementv1beta1.TakeOverIfNoDiff},
		"thorough":  {ComparisonOption: placementv1beta1.FullComparison, AllowCoOwnership: true},
		"hands-off": {WhenToTakeOver: placementv1beta1.TakeOverNever},
	} {
		inside := func(manifest string) string { return strings.ReplaceAll(manifest, `"ns"`, `"`+name+`"`) }
		work := newWork(name, s, inside(manifestNamespace), inside(manifestA("1")), inside(manifestSecret), inside(manifestDeployment), manifestUnreadable)
		work.Spec.ReportBackStrategy = &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackMirror}
		works = append(works, work)
	}
	b := newBed(t, Options{}, works...)
	for _, name := range []string{"compared", "hands-off", "cautious"} {
		b.meddle(strings.ReplaceAll(pathA, "/ns/", "/"+name+"/"), strings.ReplaceAll(objectA("2"), `"ns"`, `"`+name+`"`))
	}
	left := stored{Objects: b.member.objects}
	for _, work := range works {
		b.look(work.GetName())
		b.look(work.GetName())
		left.Works = append(left.Works, b.work(work.GetName()))
	}
	text, err := json.MarshalIndent(left, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(storedObjects, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
