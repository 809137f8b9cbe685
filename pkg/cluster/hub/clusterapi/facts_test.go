// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

// parse reads an object; an empty document is nil.
func parse(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	if document == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFactsOf(t *testing.T) {
	for what, tc := range map[string]struct {
		cluster, infrastructure, controlPlane string
		machines                              []string
		want                                  facts
	}{
		"nothing is known": {cluster: "{}", want: facts{}},
		"Azure, self-managed, v1beta1: failure domains are a map": {
			cluster: `
spec:
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureCluster, name: a}
  topology: {class: small}
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}, services: {cidrBlocks: [10.0.0.0/16, "fd00::/108"]}}
status: {failureDomains: {"2": {controlPlane: true}, "1": {controlPlane: true}, "3": {}}}`,
			infrastructure: `
spec: {location: westeurope, resourceGroup: rg, subscriptionID: sub, networkSpec: {apiServerLB: {type: Internal}}}`,
			controlPlane: `{spec: {version: v1.33.1}, status: {version: v1.33.0}}`,
			machines:     []string{`{spec: {template: {spotVMOptions: {}}}}`, `{spec: {template: {}}}`},
			want: facts{
				provider: "AzureCluster", class: "small", region: "westeurope", resourceGroup: "rg", subscription: "sub",
				zones: []string{"1", "2", "3"}, version: "v1.33.0", pods: []string{"192.168.0.0/16"},
				services: []string{"10.0.0.0/16", "fd00::/108"}, private: true, spotPools: 1,
			},
		},
		"AKS, v1beta2: failure domains are a list": {
			cluster: `
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AzureManagedCluster, name: a}
  topology: {classRef: {name: aks}, version: v1.32.0}
status: {failureDomains: [{name: "2"}, {name: "1"}, {name: "2"}, {}]}`,
			infrastructure: `{metadata: {annotations: {cluster.x-k8s.io/managed-by: ""}}}`,
			controlPlane: `
spec: {location: northeurope, resourceGroupName: rg2, subscriptionID: sub2, apiServerAccessProfile: {enablePrivateCluster: true}}`,
			machines: []string{`{spec: {scaleSetPriority: Spot}}`, `{spec: {scaleSetPriority: Regular}}`, `{spec: {template: {spec: {spotVMOptions: {maxPrice: 1}}}}}`},
			want: facts{
				provider: "AzureManagedCluster", class: "aks", region: "northeurope", resourceGroup: "rg2", subscription: "sub2",
				zones: []string{"1", "2"}, version: "v1.32.0", private: true, external: true, spotPools: 2,
			},
		},
		"another cloud, whose provider knows the failure domains": {
			cluster:        `{spec: {infrastructureRef: {kind: AWSCluster}}}`,
			infrastructure: `{spec: {region: eu-west-1}, status: {failureDomains: {eu-west-1a: {}}}}`,
			want:           facts{provider: "AWSCluster", region: "eu-west-1", zones: []string{"eu-west-1a"}},
		},
		"fields of another form are not known": {
			cluster:        `{spec: {infrastructureRef: azure, clusterNetwork: {pods: {cidrBlocks: {a: b}}}}, status: {failureDomains: "1"}}`,
			infrastructure: `{spec: {location: [a]}}`,
			controlPlane:   `{spec: 7}`,
			want:           facts{},
		},
	} {
		t.Run(what, func(t *testing.T) {
			o := objects{cluster: parse(t, tc.cluster), infrastructure: parse(t, tc.infrastructure), controlPlane: parse(t, tc.controlPlane)}
			for _, document := range tc.machines {
				o.machines = append(o.machines, parse(t, document))
			}
			if diff := cmp.Diff(tc.want, factsOf(o), cmp.AllowUnexported(facts{})); diff != "" {
				t.Errorf("Facts differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsInitialized(t *testing.T) {
	for document, want := range map[string]bool{
		`{}`:                             false,
		`{status: {phase: Provisioned}}`: false,
		`{status: {initialization: {controlPlaneInitialized: true}}}`:                              true,
		`{status: {initialization: {controlPlaneInitialized: false}}}`:                             false,
		`{status: {conditions: [{type: Ready, status: "True"}]}}`:                                  false,
		`{status: {conditions: [{type: ControlPlaneInitialized, status: "False"}]}}`:               false,
		`{status: {conditions: [{type: Ready}, {type: ControlPlaneInitialized, status: "True"}]}}`: true,
		`{status: {v1beta2: {conditions: [{type: ControlPlaneInitialized, status: "True"}]}}}`:     true,
		`{status: {initialization: true, conditions: ControlPlaneInitialized}}`:                    false,
		`{status: {controlPlaneReady: true, initialization: {infrastructureProvisioned: true}}}`:   false,
	} {
		if got := isInitialized(parse(t, document)); got != want {
			t.Errorf("isInitialized(%s) = %v, want %v", document, got, want)
		}
	}
}

func TestIsOptedIn(t *testing.T) {
	yes, no := map[string]string{LabelAutoImport: "true"}, map[string]string{LabelAutoImport: "false"}
	for _, tc := range []struct {
		what               string
		cluster, namespace map[string]string
		want               bool
	}{
		{"nobody said anything", nil, nil, false},
		{"the Cluster", yes, nil, true},
		{"the namespace", nil, yes, true},
		{"Cluster's false overrides the namespace's true", no, yes, false},
		{"Cluster's true overrides the namespace's false", yes, no, true},
	} {
		if got := isOptedIn(tc.cluster, tc.namespace); got != tc.want {
			t.Errorf("%s: got %v", tc.what, got)
		}
	}
}

func TestDesiredLabels_FromClusterAndFacts(t *testing.T) {
	f := facts{
		provider: "AzureCluster", class: "small", region: "westeurope", resourceGroup: "rg", subscription: "sub",
		zones: []string{"1", "not a label"}, spotPools: 2, private: true, external: true,
	}
	own := map[string]string{
		"cni": "calico", "team": "a", "acme.com/env": "prod", "acme.com.evil/env": "x",
		"cluster.x-k8s.io/cluster-name": "a", "topology.cluster.x-k8s.io/owned": "", "fleetgate.io/member": "other",
		"infrastructure.fleetgate.io/spot": "false",
	}
	want := map[string]string{
		"cni": "calico", "acme.com/env": "prod",
		"topology.kubernetes.io/region": "westeurope", "fleet.azure.com/location": "westeurope",
		"fleet.azure.com/resource-group": "rg", "fleet.azure.com/subscription-id": "sub",
		"infrastructure.fleetgate.io/provider": "AzureCluster", "infrastructure.fleetgate.io/cluster-class": "small",
		"infrastructure.fleetgate.io/spot": "true", "infrastructure.fleetgate.io/private": "true",
		"infrastructure.fleetgate.io/externally-managed": "true", "infrastructure.fleetgate.io/zone-1": "true",
	}
	if diff := cmp.Diff(want, desiredLabels(own, []string{"cni", "acme.com/*"}, f)); diff != "" {
		t.Errorf("Labels differ (-want +got):\n%s", diff)
	}
	for key := range desiredLabels(own, []string{"*"}, f) {
		if strings.Contains(key, "cluster.x-k8s.io") || key == "fleetgate.io/member" {
			t.Errorf("Label %s is not for members, even if all are allowed", key)
		}
	}
	one := desiredLabels(nil, nil, facts{region: "r", zones: []string{"z"}})
	if one["topology.kubernetes.io/zone"] != "z" || one["fleet.azure.com/location"] != "" {
		t.Errorf("A cluster in one zone of no Azure has labels %v", one)
	}
}

func TestDesiredProperties_FromFacts(t *testing.T) {
	want := map[string]string{
		"infrastructure.fleetgate.io/failure-domain-count": "3", "infrastructure.fleetgate.io/failure-domains": "1,2,3",
		"infrastructure.fleetgate.io/spot-pool-count": "1", "infrastructure.fleetgate.io/kubernetes-version": "v1.33.1",
		"infrastructure.fleetgate.io/kubernetes-minor": "33", "infrastructure.fleetgate.io/pod-cidrs": "10.1.0.0/16",
	}
	got := desiredProperties(facts{zones: []string{"1", "2", "3"}, spotPools: 1, version: "v1.33.1", pods: []string{"10.1.0.0/16"}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Properties differ (-want +got):\n%s", diff)
	}
	want = map[string]string{"infrastructure.fleetgate.io/failure-domain-count": "0", "infrastructure.fleetgate.io/spot-pool-count": "0"}
	if diff := cmp.Diff(want, desiredProperties(facts{version: "latest"})); diff != "" {
		t.Errorf("Properties of a region without zones differ (-want +got):\n%s", diff)
	}
}

func TestDesired_KeepsChangesByPeople(t *testing.T) {
	origin := parse(t, `{metadata: {name: prod, uid: "7"}}`)
	fleet := &registrationv1alpha1.Cluster{}
	fleet.Labels = map[string]string{"mine": "yes"}
	fleet.Spec.AgentNamespace = "elsewhere"
	if err := desired(fleet, origin, map[string]string{"cni": "calico", "env": "dev"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := desired(fleet, origin, map[string]string{"env": "prod"}, map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"mine": "yes", "env": "prod"}, fleet.Labels); diff != "" {
		t.Errorf("Labels differ (-want +got):\n%s", diff)
	}
	if fleet.Spec.KubeConfigSecret != "prod-kubeconfig" || fleet.Spec.AgentNamespace != "elsewhere" {
		t.Errorf("Got spec %+v", fleet.Spec)
	}
	if fleet.Annotations["fleetgate.io/infrastructure-properties"] != `{"a":"b"}` || fleet.Annotations[AnnotationOriginUID] != "7" {
		t.Errorf("Got annotations %v", fleet.Annotations)
	}
}

func TestFleetName(t *testing.T) {
	for name, want := range map[string]string{
		"prod":                  "prod",
		"prod.example":          "cluster-api-",
		strings.Repeat("a", 51): "cluster-api-",
	} {
		got := fleetName(name)
		if !strings.HasPrefix(got, want) || len(got) > 50 || strings.Contains(got, ".") {
			t.Errorf("fleetName(%q) = %q", name, got)
		}
	}
}

// The name of a Cluster is stored, so that another value would be another object.
func TestFleetName_StaysTheSame(t *testing.T) {
	if got, want := fleetName("Cluster.One"), "cluster-api-4aa503016aa6"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
