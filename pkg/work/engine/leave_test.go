// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/pkg/work/engine/merge"
)

func objectOfYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return object
}

func leavingEngine() *Engine {
	e := &Engine{Dialect: ours(), merger: merge.Merger{Known: scheme.Scheme}}
	e.LeaveAnnotation = "fleetgate.io/leave-to-member"
	return e
}

const webDeployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web"

func scaledBy(manager, subresource string) metav1.ManagedFieldsEntry {
	entry := ownedBy(manager, metav1.ManagedFieldsOperationUpdate, "apps/v1", `{"f:spec":{"f:replicas":{}}}`)
	entry.Subresource = subresource
	return entry
}

func TestAdoptMemberFields_IgnoresFieldsOfTheWay(t *testing.T) {
	const settings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c`
	cases := map[string]struct {
		ignored     IgnoredFields
		appliedHash string
		manifest    string // settings with data if empty
		wantA       string
	}{
		"ignores the change of a client":                            {ignored: IgnoredFields{Pointers: []string{"/data/a"}}, wantA: "member"},
		"ignores it also when the manifest has changed":             {ignored: IgnoredFields{Pointers: []string{"/data/a"}}, appliedHash: "previous", wantA: "member"},
		"until changed, ignores it while the manifest is applied":   {ignored: IgnoredFields{Pointers: []string{"/data/a"}, UntilChanged: true}, appliedHash: "current", wantA: "member"},
		"until changed, writes it when the manifest has changed":    {ignored: IgnoredFields{Pointers: []string{"/data/a"}, UntilChanged: true}, appliedHash: "previous", wantA: "hub"},
		"until changed, writes it to an object that nobody applied": {ignored: IgnoredFields{Pointers: []string{"/data/a"}, UntilChanged: true}, wantA: "hub"},
		"writes other fields":                                       {ignored: IgnoredFields{Pointers: []string{"/data/b"}}, wantA: "hub"},
		"names nothing with an invalid pointer":                     {ignored: IgnoredFields{Pointers: []string{"data/a", "/status"}}, wantA: "hub"},
		"yields to the author of the manifest": {
			ignored:  IgnoredFields{Pointers: []string{"/data/a"}},
			manifest: settings + `, annotations: {fleetgate.io/leave-to-member: None}}, data: {a: hub}}`, wantA: "hub",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := leavingEngine()
			live := objectOfYAML(t, settings+"}, data: {a: member}}")
			live.SetAnnotations(map[string]string{e.HashAnnotation: tc.appliedHash})
			manifest := settings + "}, data: {a: hub}}"
			if tc.manifest != "" {
				manifest = tc.manifest
			}
			it := Item{object: objectOfYAML(t, manifest), hash: "current", Mode: Mode{Method: Merge, Ignore: []IgnoredFields{tc.ignored}}}
			got, _, err := unstructured.NestedString(e.adoptMemberFields(it, live).object.Object, "data", "a")
			if err != nil || got != tc.wantA {
				t.Errorf("data.a = %q, %v, want %q", got, err, tc.wantA)
			}
		})
	}
}

func TestAdoptMemberFields(t *testing.T) {
	const configuration = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w"
	const role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {a: b}"
	cases := map[string]struct {
		manifest, live string
		applied        string // the last manifest; none if empty
		managed        []metav1.ManagedFieldsEntry
		mode           Method
		want           string // the spec or the like that is asked for; as the manifest says if empty
		leaves         []string
	}{
		"replicas that an autoscaler wrote": {
			manifest: webDeployment + "}, spec: {replicas: 1, paused: true}}", live: webDeployment + "}, spec: {replicas: 3}}",
			managed: []metav1.ManagedFieldsEntry{scaledBy("kube-controller-manager", "scale")},
			want:    webDeployment + "}, spec: {replicas: 3, paused: true}}", leaves: []string{"/spec/replicas"},
		},
		"the same, by a server-side apply": {
			manifest: webDeployment + "}, spec: {replicas: 1, paused: true}}", live: webDeployment + "}, spec: {replicas: 3}}",
			managed: []metav1.ManagedFieldsEntry{scaledBy("kube-controller-manager", "scale")}, mode: ServerSide,
			want: webDeployment + "}, spec: {paused: true}}", leaves: []string{"/spec/replicas"},
		},
		"replicas that a person wrote": {
			manifest: webDeployment + "}, spec: {replicas: 1}}", live: webDeployment + "}, spec: {replicas: 3}}",
			managed: []metav1.ManagedFieldsEntry{scaledBy("kubectl", "scale"), scaledBy("kubectl-edit", "")},
		},
		"replicas with annotation None": {
			manifest: webDeployment + ", annotations: {fleetgate.io/leave-to-member: None}}, spec: {replicas: 1}}", live: webDeployment + "}, spec: {replicas: 3}}",
			managed: []metav1.ManagedFieldsEntry{scaledBy("kube-controller-manager", "scale")},
		},
		"replicas that left the manifest": {
			manifest: webDeployment + "}, spec: {paused: true}}", live: webDeployment + "}, spec: {replicas: 5}}",
			want: webDeployment + "}, spec: {paused: true, replicas: 5}}",
		},
		"replicas that left the manifest and only we own, by a server-side apply": {
			manifest: webDeployment + "}, spec: {paused: true}}", live: webDeployment + "}, spec: {replicas: 5}}",
			managed: []metav1.ManagedFieldsEntry{ownedBy("us", metav1.ManagedFieldsOperationApply, "apps/v1", `{"f:spec":{"f:replicas":{}}}`)},
			mode:    ServerSide, want: webDeployment + "}, spec: {paused: true, replicas: 5}}",
		},
		"size of a claim that is larger on the member": {
			manifest: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {resources: {requests: {storage: 1Gi}}}}",
			live:     "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {resources: {requests: {storage: 1025Mi}}}}",
			want:     "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {resources: {requests: {storage: 1025Mi}}}}",
			leaves:   []string{"/spec/resources/requests/storage"},
		},
		"size of a claim that the manifest enlarges": {
			manifest: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {resources: {requests: {storage: 2Gi}}}}",
			live:     "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {resources: {requests: {storage: 2047Mi}}}}",
		},
		"class of an Ingress that the manifest does not set": {
			manifest: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {defaultBackend: {}}}",
			live:     "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {ingressClassName: theirs}}",
			want:     "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {defaultBackend: {}, ingressClassName: theirs}}",
		},
		"class of a load balancer that the manifest does not set": {
			manifest: "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer}}",
			live:     "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer, loadBalancerClass: theirs}}",
			want:     "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer, loadBalancerClass: theirs}}",
		},
		"class of a load balancer, but not if the last manifest set it": {
			manifest: "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer}}",
			applied:  "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer, loadBalancerClass: ours}}",
			live:     "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer, loadBalancerClass: ours}}",
		},
		"class of a load balancer, but not of another Service": {
			manifest: "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: ClusterIP}}",
			live:     "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: LoadBalancer, loadBalancerClass: theirs}}",
		},
		"fields that the author names": {
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {fleetgate.io/leave-to-member: "/data/a, /data/b~1c,/data/gone"}}, data: {a: "1", b/c: "1", gone: "1", d: "1"}}`,
			live:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: "2", b/c: "2", d: "2"}}`,
			want:     `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {fleetgate.io/leave-to-member: "/data/a, /data/b~1c,/data/gone"}}, data: {a: "2", b/c: "2", d: "1"}}`,
			leaves:   []string{"/data/a", "/data/b~1c", "/data/gone"},
		},
		"fields of items, which may have other places on the member": {
			manifest: webDeployment + ", annotations: {fleetgate.io/leave-to-member: /spec/template/spec/containers/*/image}}, spec: {replicas: 1, template: {spec: {containers: [{name: a, image: a1}, {name: b, image: b1}]}}}}",
			live:     webDeployment + "}, spec: {replicas: 1, template: {spec: {containers: [{name: side, image: s}, {name: b, image: b2}, {name: a, image: a2}]}}}}",
			want:     webDeployment + ", annotations: {fleetgate.io/leave-to-member: /spec/template/spec/containers/*/image}}, spec: {replicas: 1, template: {spec: {containers: [{name: a, image: a2}, {name: b, image: b2}]}}}}",
			leaves:   []string{"/spec/template/spec/containers/0/image", "/spec/template/spec/containers/1/image"},
		},
		"an authority in place of a placeholder": {
			manifest: configuration + "}, webhooks: [{name: a, clientConfig: {caBundle: Cg==}}, {name: b, clientConfig: {}}, {name: c, clientConfig: {caBundle: T3Vycw==}}, {name: d, clientConfig: {caBundle: Cg==}}]}",
			live:     configuration + "}, webhooks: [{name: a, clientConfig: {caBundle: QQ==}}, {name: b, clientConfig: {caBundle: Qg==}}, {name: c, clientConfig: {caBundle: Qw==}}, {name: d, clientConfig: {caBundle: Cg==}}]}",
			want:     configuration + "}, webhooks: [{name: a, clientConfig: {caBundle: QQ==}}, {name: b, clientConfig: {caBundle: Qg==}}, {name: c, clientConfig: {caBundle: T3Vycw==}}, {name: d, clientConfig: {caBundle: Cg==}}]}",
			leaves:   []string{"/webhooks/0/clientConfig/caBundle"},
		},
		"an authority that an injector wrote instead of that of the last manifest, and not that one itself": {
			manifest: configuration + "}, webhooks: [{name: a, clientConfig: {}}, {name: b, clientConfig: {}}, {name: c, clientConfig: {caBundle: Cg==}}]}",
			applied:  configuration + "}, webhooks: [{name: a, clientConfig: {caBundle: QQ==}}, {name: b, clientConfig: {caBundle: Qg==}}, {name: c, clientConfig: {caBundle: Qw==}}]}",
			live:     configuration + "}, webhooks: [{name: a, clientConfig: {caBundle: QQ==}}, {name: b, clientConfig: {caBundle: T3RoZXI=}}, {name: c, clientConfig: {caBundle: Qw==}}]}",
			want:     configuration + "}, webhooks: [{name: a, clientConfig: {}}, {name: b, clientConfig: {caBundle: T3RoZXI=}}, {name: c, clientConfig: {caBundle: Qw==}}]}",
			leaves:   []string{"/webhooks/2/clientConfig/caBundle"},
		},
		"an authority of an injector": {
			manifest: "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: s, annotations: {cert-manager.io/inject-ca-from: ns/c}}, spec: {caBundle: T2xk}}",
			live:     "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: s}, spec: {caBundle: TmV3}}",
			want:     "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: s, annotations: {cert-manager.io/inject-ca-from: ns/c}}, spec: {caBundle: TmV3}}",
			leaves:   []string{"/spec/caBundle"},
		},
		"failure policy of the manager that wrote the authority": {
			manifest: configuration + "}, webhooks: [{name: a, failurePolicy: Ignore, clientConfig: {}}, {name: b, failurePolicy: Ignore, clientConfig: {}}]}",
			live:     configuration + "}, webhooks: [{name: b, failurePolicy: Fail, clientConfig: {caBundle: Qg==}}, {name: a, failurePolicy: Fail, clientConfig: {caBundle: QQ==}}]}",
			managed: []metav1.ManagedFieldsEntry{
				ownedBy("pilot-discovery", metav1.ManagedFieldsOperationUpdate, "admissionregistration.k8s.io/v1",
					`{"f:webhooks":{"k:{\"name\":\"a\"}":{"f:failurePolicy":{},"f:clientConfig":{"f:caBundle":{}}},"k:{\"name\":\"b\"}":{"f:clientConfig":{"f:caBundle":{}}}}}`),
				ownedBy("kubectl-edit", metav1.ManagedFieldsOperationUpdate, "admissionregistration.k8s.io/v1",
					`{"f:webhooks":{"k:{\"name\":\"b\"}":{"f:failurePolicy":{},"f:clientConfig":{"f:caBundle":{}}}}}`)},
			want:   configuration + "}, webhooks: [{name: a, failurePolicy: Fail, clientConfig: {caBundle: QQ==}}, {name: b, failurePolicy: Ignore, clientConfig: {caBundle: Qg==}}]}",
			leaves: []string{"/webhooks/0/failurePolicy"},
		},
		"suspension of a job in a queue of Kueue": {
			manifest: "{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: false, parallelism: 2}}",
			live:     "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {suspend: true, parallelism: 1}}",
			want:     "{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true, parallelism: 2}}",
			leaves:   []string{"/spec/suspend"},
		},
		"suspension of a job that Kueue started without a queue in the manifest": {
			manifest: "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {runPolicy: {suspend: true}}}",
			live:     "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {runPolicy: {suspend: false}}}",
			managed:  []metav1.ManagedFieldsEntry{ownedBy("kueue", metav1.ManagedFieldsOperationUpdate, "kubeflow.org/v1", `{"f:spec":{"f:runPolicy":{"f:suspend":{}}}}`)},
			want:     "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}, spec: {runPolicy: {suspend: false}}}",
			leaves:   []string{"/spec/runPolicy/suspend"},
		},
		"suspension of another job": {
			manifest: "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {suspend: false}}",
			live:     "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {suspend: true}}",
			managed:  []metav1.ManagedFieldsEntry{ownedBy("kubectl-patch", metav1.ManagedFieldsOperationUpdate, "batch/v1", `{"f:spec":{"f:suspend":{}}}`)},
		},
		"rules that are aggregated": {
			manifest: role + ", rules: [{verbs: [get]}]}", live: role + ", rules: [{verbs: [list]}]}", want: role + ", rules: [{verbs: [list]}]}", leaves: []string{"/rules"},
		},
		"rules that will be aggregated": {manifest: role + ", rules: [{verbs: [get]}]}", want: role + "}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			it := Item{object: objectOfYAML(t, tc.manifest), Mode: Mode{Method: Merge}}
			if tc.mode != "" {
				it.Mode.Method = tc.mode
			}
			before := it.object.DeepCopy()
			var live *unstructured.Unstructured
			if tc.live != "" {
				live = objectOfYAML(t, tc.live)
				live.SetManagedFields(tc.managed)
			}
			e := leavingEngine()
			if tc.applied != "" {
				text, err := objectOfYAML(t, tc.applied).MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				live.SetAnnotations(map[string]string{e.AppliedAnnotation: string(text)})
			}
			got := e.adoptMemberFields(it, live)
			want := before
			if tc.want != "" {
				want = objectOfYAML(t, tc.want)
			}
			if diff := cmp.Diff(want.Object, got.object.Object); diff != "" {
				t.Errorf("what is asked for (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.leaves, got.leaves); diff != "" {
				t.Errorf("what is left to the member (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.Object, it.object.Object); diff != "" {
				t.Errorf("the manifest changed (-before +after):\n%s", diff)
			}
			if got.pinned != (tc.mode == ServerSide && tc.want != "" && tc.leaves == nil) {
				t.Errorf("pinned is %t", got.pinned)
			}
		})
	}
}

func TestAdoptMemberFields_MergesNothingThatTheMemberDecides(t *testing.T) {
	e := leavingEngine()
	manifest := objectOfYAML(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {fleetgate.io/leave-to-member: "/data/a,/data/gone"}}, data: {a: "1", gone: "1"}}`)
	live := manifest.DeepCopy()
	live.Object["data"] = map[string]any{"a": "2"}
	text, err := json.Marshal(manifest.Object)
	if err != nil {
		t.Fatal(err)
	}
	annotations := live.GetAnnotations()
	annotations[e.AppliedAnnotation] = string(text)
	live.SetAnnotations(annotations)
	it := e.adoptMemberFields(Item{object: manifest, Mode: Mode{Method: Merge}}, live)
	patch, err := e.merge(it, e.lastApplied(it, live), it.object, live)
	if err != nil || !patch.IsEmpty() {
		t.Errorf("the patch is %s, error %v", patch.Data, err)
	}
	if refused := e.verify(it, live); refused != nil {
		t.Errorf("refused: %+v", refused)
	}
}

func TestRun_NamesTheFieldsThatTheMemberDecides(t *testing.T) {
	live := objectOfYAML(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: a, uid: u}, data: {a: "theirs"}}`)
	for name, objects := range map[string][]runtime.Object{"existing object": {live}, "new object": nil} {
		e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time), objects...)
		for _, verb := range []string{"create", "patch"} { // The fake neither assigns a UID nor merges.
			e.member.(*fake.FakeDynamicClient).PrependReactor(verb, "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, live, nil })
		}
		e.LeaveAnnotation = "fleetgate.io/leave-to-member"
		it := configMapItem(t, "1")
		it.object.SetAnnotations(map[string]string{e.LeaveAnnotation: "/data/a"})
		out := e.applyOne(t.Context(), work, it)
		if out.Err != nil || len(out.Left) != 1 || out.Left[0] != "/data/a" {
			t.Errorf("%s: error %v, left %q", name, out.Err, out.Left)
		}
	}
}

func TestPlan_RefusesFieldsThatCannotBeLeft(t *testing.T) {
	for _, text := range []string{"spec/replicas", "/", "/kind", "/metadata/name", "/metadata/annotations", "/status/a", "/data/a,,"} {
		manifest := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		manifest.SetAnnotations(map[string]string{"fleetgate.io/leave-to-member": text})
		if refused := leavingEngine().refuseLeave(Item{object: manifest}); refused == nil || refused.Reason != NotAcceptable {
			t.Errorf("%q is accepted: %+v", text, refused)
		}
	}
}

func TestFieldPath_IsFoundInManagedFields(t *testing.T) {
	entry := ownedBy("us", metav1.ManagedFieldsOperationApply, "apps/v1",
		`{"f:spec":{"f:replicas":{},"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}},"k:{\"name\":\"b\"}":{".":{},"f:tty":{}}},"f:atomic":{}}}`)
	document := objectOfYAML(t, "{apiVersion: v1, kind: X, spec: {replicas: 1, paused: true, atomic: {x: 1}, containers: [{name: b, image: i}, {name: a, image: i}]}}").Object
	for text, want := range map[string]bool{"/spec/replicas": true, "/spec/paused": false, "/spec/atomic/x": true,
		"/spec/containers/0/image": false, "/spec/containers/1/image": true} {
		pointers, err := parsePointers(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := fieldsAt(document, pointers[0])[0].isIn(&entry); got != want {
			t.Errorf("%s is in it: %t", text, got)
		}
	}
}

func TestComparable_HasWhatTheServerAssigned(t *testing.T) {
	wanted := objectOfYAML(t, "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{name: a, port: 80}, {name: b, port: 81, nodePort: 30001}]}}")
	live := objectOfYAML(t, "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], sessionAffinity: None, ports: [{name: a, port: 80, nodePort: 30000}, {name: b, port: 81, nodePort: 30009}]}}")
	want := objectOfYAML(t, "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{name: a, port: 80, nodePort: 30000}, {name: b, port: 81, nodePort: 30001}]}}")
	if diff := cmp.Diff(want.Object, leavingEngine().comparable(Item{object: wanted}, live).Object); diff != "" {
		t.Errorf("what is compared (-want +got):\n%s", diff)
	}
}
