// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
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

func TestKeepsRemoved(t *testing.T) {
	const service, claim = "{apiVersion: v1, kind: Service, spec: {ports: [], ", "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeMode: Filesystem, "
	const controller, selector = "{apiVersion: v1, kind: ReplicationController, spec: {template: {metadata: {labels: {app: ", "}}}, selector: {app: a}}}"
	const source, reference = "dataSource: {kind: K, name: n}", "dataSourceRef: {kind: K, name: n}"
	for name, tc := range map[string]struct{ before, wanted, live, want string }{
		"a headless Service":                                {service + "clusterIP: None}}", service + "}}", service + "clusterIP: None}}", "spec.clusterIP"},
		"a headless Service that gets an address":           {service + "clusterIP: None}}", service + "clusterIP: 10.0.0.1}}", service + "clusterIP: None}}", "spec.clusterIP"},
		"a Service that stays headless":                     {service + "clusterIP: None}}", service + "clusterIP: None}}", service + "clusterIP: None}}", ""},
		"a Service that another client made so":             {service + "}}", service + "}}", service + "clusterIP: None}}", ""},
		"a Service of another type":                         {service + "clusterIP: None}}", service + "type: ExternalName}}", service + "clusterIP: None}}", ""},
		"a ReplicationController with other labels":         {controller + "a}}}}}", controller + "b}}}}}", controller + "a" + selector, "spec.selector"},
		"a ReplicationController with more labels":          {controller + "a}}}}}", controller + "a, b: c}}}}}", controller + "a" + selector, ""},
		"a ReplicationController whose manifest selects it": {controller + "a}}}}}", controller + "b" + selector, controller + "a" + selector, ""},
		"a claim without its source":                        {claim + source + "}}", claim + "}}", claim + source + ", " + reference + "}}", "spec.dataSource"},
		"a claim without its reference":                     {claim + reference + "}}", claim + "}}", claim + source + ", " + reference + "}}", "spec.dataSourceRef"},
		"a claim with the source as a reference":            {claim + source + "}}", claim + reference + "}}", claim + source + ", " + reference + "}}", ""},
		"a claim whose source another client chose":         {claim + "}}", claim + "}}", claim + source + ", " + reference + "}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
			before, err := objectOfYAML(t, tc.before).MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			live := objectOfYAML(t, tc.live)
			live.SetAnnotations(map[string]string{e.AppliedAnnotation: string(before)})
			err = e.keepsRemoved(Item{object: objectOfYAML(t, tc.wanted), Mode: Mode{Method: Merge}}, live)
			if tc.want == "" && err != nil || tc.want != "" && (!isImmutable(err) || !strings.Contains(err.Error(), tc.want+":")) {
				t.Errorf("got error %v, want one of %q", err, tc.want)
			}
		})
	}
}
