// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// change makes a value that has every field set into one that the rules of its
// kind accept. Fields that exclude each other need several changes, each of
// which makes an object of its own.
type change func(object map[string]any)

// changes has, by the CRD's name, how its objects become valid. A kind that is
// not here has no rules that exclude a field.
var changes = map[string][]change{
	"clusterresourceplacements.placement.kubernetes-fleet.io": placements,
	"resourceplacements.placement.kubernetes-fleet.io":        placements,

	"clusterschedulingpolicysnapshots.placement.kubernetes-fleet.io": policies("spec", "policy"),
	"schedulingpolicysnapshots.placement.kubernetes-fleet.io":        policies("spec", "policy"),

	"clusterresourceoverrides.placement.kubernetes-fleet.io": {set("Cluster", "spec", "placement", "scope")},

	"clusterresourceplacementdisruptionbudgets.placement.kubernetes-fleet.io": {
		without("spec", "maxUnavailable"), without("spec", "minAvailable"),
	},

	"immutabilitypolicies.admission.fleetgate.io": {lookup("list"), lookup("get")},

	"clusterregistrationtokens.fleet.cattle.io": {set("90s", "spec", "ttl")},

	"clusterstagedupdatestrategies.placement.kubernetes-fleet.io": {stages("spec")},
	"stagedupdatestrategies.placement.kubernetes-fleet.io":        {stages("spec")},
	"clusterstagedupdateruns.placement.kubernetes-fleet.io":       {stages("status", "stagedUpdateStrategySnapshot")},
	"stagedupdateruns.placement.kubernetes-fleet.io":              {stages("status", "stagedUpdateStrategySnapshot")},
}

// objectsOf makes objects of a kind that set, between them, every field that a
// valid object can have.
func objectsOf(crd *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) []*unstructured.Unstructured {
	kind := changes[crd.Name]
	if len(kind) == 0 {
		kind = []change{func(map[string]any) {}}
	}
	var objects []*unstructured.Unstructured
	for _, change := range kind {
		object := fillObject(*version.Schema.OpenAPIV3Schema)
		delete(object, "metadata")
		object["apiVersion"] = crd.Spec.Group + "/" + version.Name
		object["kind"] = crd.Spec.Names.Kind
		change(object)
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return objects
}

// placements are one object per way of choosing members. Each is about one
// namespace, since its status is to be accessible there.
var placements = func() []change {
	var placements []change
	for i, policy := range policies("spec", "policy") {
		placements = append(placements, func(object map[string]any) {
			policy(object)
			selector := at(object, "spec", "resourceSelectors").([]any)[0].(map[string]any)
			selector["kind"] = "Namespace"
			if i == 0 {
				delete(selector, "labelSelector")
			} else {
				delete(selector, "name")
			}
		})
	}
	return placements
}()

// policies are one change per way of choosing members.
func policies(path ...string) []change {
	policy := func(object map[string]any) map[string]any { return at(object, path...).(map[string]any) }
	toleration := func(object map[string]any) map[string]any {
		return policy(object)["tolerations"].([]any)[0].(map[string]any)
	}
	return []change{
		func(object map[string]any) {
			p := policy(object)
			p["placementType"] = "PickN"
			delete(p, "clusterNames")
			toleration(object)["operator"] = "Equal"
		},
		func(object map[string]any) {
			p := policy(object)
			p["placementType"] = "PickAll"
			delete(p, "clusterNames")
			delete(p, "numberOfClusters")
			delete(p, "topologySpreadConstraints")
			delete(toleration(object), "value")
		},
		func(object map[string]any) {
			p := policy(object)
			p["placementType"] = "PickFixed"
			delete(p, "affinity")
			delete(p, "numberOfClusters")
			delete(p, "topologySpreadConstraints")
			delete(p, "tolerations")
		},
	}
}

// lookup leaves one of the two kinds of lookups: an object has either.
func lookup(without string) change {
	return func(object map[string]any) {
		delete(at(object, "spec", "lookups").([]any)[0].(map[string]any), without)
	}
}

// stages makes the task before each stage an approval, the only kind allowed
// there.
func stages(path ...string) change {
	return func(object map[string]any) {
		for _, stage := range at(object, append(path, "stages")...).([]any) {
			task := at(stage.(map[string]any), "beforeStageTasks").([]any)[0].(map[string]any)
			task["type"] = "Approval"
			delete(task, "waitTime")
		}
	}
}

func set(value any, path ...string) change {
	return func(object map[string]any) {
		at(object, path[:len(path)-1]...).(map[string]any)[path[len(path)-1]] = value
	}
}

func without(path ...string) change {
	return func(object map[string]any) {
		delete(at(object, path[:len(path)-1]...).(map[string]any), path[len(path)-1])
	}
}

func at(object map[string]any, path ...string) any {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue(), "%v", path)
	return value
}
