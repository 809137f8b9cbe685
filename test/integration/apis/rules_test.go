// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The rules that a schema checks by itself, with the messages that users' tools
// match. The numbers V1 to V33 tell one rule from another, here and where one of
// these entries fails.
var _ = Describe("A schema", func() {
	DescribeTable("refuses to create", func(ctx SpecContext, object *unstructured.Unstructured, message string) {
		expectRefused(hubClient.Create(ctx, object), message)
	},
		Entry("V1: a MemberCluster with a long name", named(memberCluster(), 64), "metadata.name max length is 63"),
		Entry("V1: a ClusterStagedUpdateRun with a long name", named(updateRun("ClusterStagedUpdateRun"), 64), "metadata.name max length is 63"),
		Entry("V1: a StagedUpdateRun with a long name", named(updateRun("StagedUpdateRun"), 64), "metadata.name max length is 63"),

		Entry("V3: a namespace's status without a namespace",
			crp(`{"statusReportingScope":"NamespaceAccessible","resourceSelectors":[`+clusterRole+`]}`), messageV3),
		Entry("V3: a namespace's status with two namespaces",
			crp(`{"statusReportingScope":"NamespaceAccessible","resourceSelectors":[`+namespaceNamed("NamespaceOnly")+`,`+namespaceNamed("NamespaceOnly")+`]}`), messageV3),

		Entry("V5: two namespaces with selected resources",
			crp(`{"resourceSelectors":[`+namespaceNamed(withSelectors)+`,`+namespaceNamed(withSelectors)+`]}`), messageV5),
		Entry("V6: a namespace with selected resources by label",
			crp(`{"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","selectionScope":"`+withSelectors+`","labelSelector":{}}]}`), messageV6),
		Entry("V6: every namespace with selected resources",
			rp(`{"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","selectionScope":"`+withSelectors+`"}]}`), messageV6),
		Entry("V7: a namespace with selected resources beside another",
			crp(`{"resourceSelectors":[`+namespaceNamed(withSelectors)+`,`+namespaceNamed("NamespaceOnly")+`]}`), messageV7),

		Entry("V9: PickFixed with affinity", policy(`{"placementType":"PickFixed","affinity":{}}`), messageV9),
		Entry("V9: PickFixed with numberOfClusters", policy(`{"placementType":"PickFixed","numberOfClusters":1}`), messageV9),
		Entry("V9: PickFixed with a spread", policy(`{"placementType":"PickFixed","topologySpreadConstraints":[{"topologyKey":"zone"}]}`), messageV9),
		Entry("V9: PickFixed with tolerations", policy(`{"placementType":"PickFixed","tolerations":[{"key":"a"}]}`), messageV9),
		Entry("V10: PickAll with clusterNames", policy(`{"clusterNames":["member-1"]}`), messageV10),
		Entry("V10: PickAll with numberOfClusters", policy(`{"placementType":"PickAll","numberOfClusters":0}`), messageV10),
		Entry("V10: PickAll with a spread", policy(`{"topologySpreadConstraints":[{"topologyKey":"zone"}]}`), messageV10),
		Entry("V11: PickN without numberOfClusters", policy(`{"placementType":"PickN"}`), messageV11),
		Entry("V11: PickN with clusterNames", policy(`{"placementType":"PickN","numberOfClusters":1,"clusterNames":["member-1"]}`), messageV11),
		Entry("V12: a toleration of any value with a value",
			policy(`{"tolerations":[{"key":"a","operator":"Exists","value":"b"}]}`), "value must be empty when operator is Exists"),
		Entry("V13: a toleration without key for one value",
			policy(`{"tolerations":[{"value":"b"}]}`), "operator must be Exists when key is empty"),
		Entry("V13: a toleration with an empty key for one value",
			policy(`{"tolerations":[{"key":"","operator":"Equal"}]}`), "operator must be Exists when key is empty"),

		Entry("V14: a selector by name and by label",
			crp(`{"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"a","labelSelector":{}}]}`),
			"name and labelSelector are mutually exclusive in a resource selector"),
		Entry("V15: a mirrored status that goes nowhere",
			crp(`{"resourceSelectors":[`+clusterRole+`],"strategy":{"reportBackStrategy":{"type":"Mirror"}}}`),
			"when reportBackStrategy.type is 'Mirror', a destination must be specified"),
		Entry("V17: a ClusterResourceOverride for a ResourcePlacement",
			overrideOf("ClusterResourceOverride", `{"name":"web","scope":"Namespaced"}`),
			"clusterResourceOverride placement reference cannot be Namespaced scope"),

		Entry("V21: a budget said in both ways", budget(`{"maxUnavailable":1,"minAvailable":1}`),
			"Both MaxUnavailable and MinAvailable cannot be specified"),
		Entry("V22: a percentage above 100", budget(`{"maxUnavailable":"101%"}`), "spec.maxUnavailable"),
		Entry("V22: a percentage above 100 to keep", budget(`{"minAvailable":"101%"}`), "spec.minAvailable"),
		Entry("V22: a number as text", budget(`{"minAvailable":"1"}`), "If supplied value is String should match regex"),
		Entry("V22: a number below 0", budget(`{"maxUnavailable":-1}`), "If supplied value is String should match regex"),
		Entry("V22: a number below 0 to keep", budget(`{"minAvailable":-1}`), "spec.minAvailable"),

		Entry("V29: an approval after a stage with a wait",
			strategy(`[{"name":"a","afterStageTasks":[{"type":"Approval","waitTime":"1m"}]}]`),
			"AfterStageTaskType is Approval, waitTime is not allowed"),
		Entry("V29: an approval before a stage with a wait",
			strategy(`[{"name":"a","beforeStageTasks":[{"type":"Approval","waitTime":"1m"}]}]`),
			"AfterStageTaskType is Approval, waitTime is not allowed"),
		Entry("V30: a timed wait without its time",
			strategy(`[{"name":"a","afterStageTasks":[{"type":"TimedWait"}]}]`),
			"AfterStageTaskType is TimedWait, waitTime is required"),
		Entry("V31: a timed wait before a stage",
			strategy(`[{"name":"a","beforeStageTasks":[{"type":"TimedWait"}]}]`),
			"BeforeStageTaskType cannot be TimedWait"),
		Entry("V32: no member at once", strategy(`[{"name":"a","maxConcurrency":0}]`), "maxConcurrency must be at least 1"),

		Entry("a placement without selectors", crp(`{"resourceSelectors":[]}`), "spec.resourceSelectors"),
		Entry("an empty text where the values are given", crp(`{"statusReportingScope":"","resourceSelectors":[`+clusterRole+`]}`),
			`supported values: "ClusterScopeOnly", "NamespaceAccessible"`),
		Entry("a surge above 100 %", crp(`{"resourceSelectors":[`+clusterRole+`],"strategy":{"rollingUpdate":{"maxSurge":"101%"}}}`),
			"spec.strategy.rollingUpdate.maxSurge"),
		Entry("32 stages", strategy(manyStages(32)), "must have at most 31 items"),
		Entry("a stage with a long name", strategy(`[{"name":"`+strings.Repeat("a", 64)+`"}]`), "spec.stages[0].name"),
		Entry("a stage with a capital in its name", strategy(`[{"name":"Canary"}]`), "spec.stages[0].name"),
		Entry("no percentage at once", strategy(`[{"name":"a","maxConcurrency":"0%"}]`), "spec.stages[0].maxConcurrency"),
		Entry("three tasks after a stage",
			strategy(`[{"name":"a","afterStageTasks":[{"type":"Approval"},{"type":"Approval"},{"type":"Approval"}]}]`), "must have at most 2 items"),
		Entry("two tasks before a stage",
			strategy(`[{"name":"a","beforeStageTasks":[{"type":"Approval"},{"type":"Approval"}]}]`), "must have at most 1 item"),
		Entry("a wait in days", strategy(`[{"name":"a","afterStageTasks":[{"type":"TimedWait","waitTime":"1d"}]}]`),
			"spec.stages[0].afterStageTasks[0].waitTime"),
	)

	DescribeTable("refuses to change", func(ctx SpecContext, object *unstructured.Unstructured, patch, message string) {
		Expect(hubClient.Create(ctx, object)).To(Succeed())
		expectRefused(hubClient.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))), message)
	},
		Entry("V2: taking the policy away", policy(`{}`), `{"spec":{"policy":null}}`, "policy cannot be removed once set"),
		Entry("V4: who can read a status", crp(`{"resourceSelectors":[`+namespaceNamed("NamespaceOnly")+`]}`),
			`{"spec":{"statusReportingScope":"NamespaceAccessible"}}`, "statusReportingScope is immutable"),
		Entry("V8: the way of choosing members", policy(`{"placementType":"PickAll"}`),
			`{"spec":{"policy":{"placementType":"PickFixed"}}}`, "placement type is immutable"),
		Entry("V16: an external rollout", crp(`{"resourceSelectors":[`+clusterRole+`],"strategy":{"type":"External"}}`),
			`{"spec":{"strategy":{"type":"RollingUpdate"}}}`, "cannot change rollout strategy type from 'External' to other types"),

		Entry("V18: the placement of a ClusterResourceOverride", overrideOf("ClusterResourceOverride", `{"name":"web"}`),
			`{"spec":{"placement":{"name":"other"}}}`, "The placement field is immutable"),
		Entry("V18: taking it away", overrideOf("ClusterResourceOverride", `{"name":"web"}`),
			`{"spec":{"placement":null}}`, "The placement field is immutable"),
		Entry("V18: setting it later", overrideOf("ResourceOverride", `null`),
			`{"spec":{"placement":{"name":"web"}}}`, "The placement field is immutable"),
		Entry("V18: the placement of a ResourceOverride", overrideOf("ResourceOverride", `{"name":"web"}`),
			`{"spec":{"placement":{"scope":"Namespaced"}}}`, "The placement field is immutable"),
		Entry("V18: that of a ClusterResourceOverrideSnapshot", overrideSnapshot("ClusterResourceOverride"),
			`{"spec":{"overrideSpec":{"placement":{"name":"other"}}}}`, "The placement field is immutable"),
		Entry("V18: that of a ResourceOverrideSnapshot", overrideSnapshot("ResourceOverride"),
			`{"spec":{"overrideSpec":{"placement":null}}}`, "The placement field is immutable"),

		Entry("V19: the member of an eviction", eviction(), `{"spec":{"clusterName":"other"}}`, "The ClusterName field is immutable"),
		Entry("V20: the placement of an eviction", eviction(), `{"spec":{"placementName":"other"}}`, "The PlacementName field is immutable"),

		Entry("V23: stopping a run that has not begun", updateRun("ClusterStagedUpdateRun"), `{"spec":{"state":"Stop"}}`,
			"invalid state transition: cannot transition from Initialize to Stop"),
		Entry("V24: starting over a run", with(updateRun("StagedUpdateRun"), "Run", "spec", "state"), `{"spec":{"state":"Initialize"}}`,
			"invalid state transition: cannot transition from Run to Initialize"),
		Entry("V25: starting over a stopped run", with(updateRun("ClusterStagedUpdateRun"), "Stop", "spec", "state"), `{"spec":{"state":"Initialize"}}`,
			"invalid state transition: cannot transition from Stop to Initialize"),
		Entry("V26: the placement of a run", updateRun("StagedUpdateRun"), `{"spec":{"placementName":"other"}}`, "placementName is immutable"),
		Entry("V27: the snapshot of a run", updateRun("ClusterStagedUpdateRun"), `{"spec":{"resourceSnapshotIndex":"2"}}`, "resourceSnapshotIndex is immutable"),
		Entry("V28: the strategy of a run", updateRun("StagedUpdateRun"), `{"spec":{"stagedRolloutStrategyName":"other"}}`, "stagedRolloutStrategyName is immutable"),
		Entry("V33: a ClusterApprovalRequest", approval("ClusterApprovalRequest"), `{"spec":{"targetStage":"other"}}`, "The spec field is immutable"),
		Entry("V33: an ApprovalRequest", approval("ApprovalRequest"), `{"spec":{"parentStageRollout":"other"}}`, "The spec field is immutable"),
	)

	DescribeTable("lets through", func(ctx SpecContext, object *unstructured.Unstructured, patches ...string) {
		Expect(hubClient.Create(ctx, object)).To(Succeed())
		for _, patch := range patches {
			Expect(hubClient.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed(), patch)
		}
	},
		Entry("V1: a MemberCluster with 63 characters", named(memberCluster(), 63)),
		Entry("V2: a policy that is set later", crp(`{"resourceSelectors":[`+clusterRole+`]}`),
			`{"spec":{"policy":{"placementType":"PickN","numberOfClusters":1}}}`, `{"spec":{"policy":{"numberOfClusters":3}}}`),
		Entry("V3: a namespace's status with one namespace",
			crp(`{"statusReportingScope":"NamespaceAccessible","resourceSelectors":[`+clusterRole+`,`+namespaceNamed("NamespaceOnly")+`]}`)),
		Entry("V3, V4: a ResourcePlacement whose scope changes", rp(`{"resourceSelectors":[`+clusterRole+`]}`),
			`{"spec":{"statusReportingScope":"NamespaceAccessible"}}`, `{"spec":{"statusReportingScope":"ClusterScopeOnly"}}`),
		Entry("V5-V7: a namespace with selected resources",
			crp(`{"resourceSelectors":[`+namespaceNamed(withSelectors)+`,`+clusterRole+`]}`)),
		Entry("V5-V7: a kind of another group that is called Namespace",
			crp(`{"resourceSelectors":[`+namespaceNamed(withSelectors)+`,{"group":"example.test","version":"v1","kind":"Namespace"}]}`)),
		Entry("V9: PickFixed with names that change", policy(`{"placementType":"PickFixed","clusterNames":["member-1"]}`),
			`{"spec":{"policy":{"clusterNames":["member-2"]}}}`),
		Entry("V10: PickAll with affinity and tolerations",
			policy(`{"affinity":{"clusterAffinity":{}},"tolerations":[{"operator":"Exists"},{"key":"a","operator":"Exists","value":""}]}`)),
		Entry("V11: PickN of none", policy(`{"placementType":"PickN","numberOfClusters":0}`)),
		Entry("V14: an empty name beside labels",
			crp(`{"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"","labelSelector":{}}]}`)),
		Entry("V15: a mirrored status with a destination",
			crp(`{"resourceSelectors":[`+clusterRole+`],"strategy":{"reportBackStrategy":{"type":"Mirror","destination":"WorkAPI"}}}`)),
		Entry("V16: a rollout that becomes external", crp(`{"resourceSelectors":[`+clusterRole+`],"strategy":{"type":"RollingUpdate"}}`),
			`{"spec":{"strategy":{"type":"External"}}}`),
		Entry("V18: a change of an override's rules", overrideOf("ClusterResourceOverride", `{"name":"web"}`),
			`{"spec":{"policy":{"overrideRules":[{"overrideType":"Delete","clusterSelector":{"clusterSelectorTerms":[]}}]}}}`),
		Entry("V21, V22: limits of a budget", budget(`{"maxUnavailable":"100%"}`),
			`{"spec":{"maxUnavailable":null,"minAvailable":0}}`, `{"spec":{"minAvailable":"0%"}}`),
		Entry("V23-V25: a run that stops and resumes", updateRun("StagedUpdateRun"),
			`{"spec":{"state":"Run"}}`, `{"spec":{"state":"Stop"}}`, `{"spec":{"state":"Run"}}`),
		Entry("V29-V32: stages with all that they may have",
			strategy(`[{"name":"a","maxConcurrency":"100%","beforeStageTasks":[{"type":"Approval"}],`+
				`"afterStageTasks":[{"type":"TimedWait","waitTime":"1h30m"},{"type":"Approval"}]}]`)),
		Entry("V30: a wait of no time", strategy(`[{"name":"a","afterStageTasks":[{"type":"TimedWait","waitTime":"0s"}]}]`)),
		Entry("31 stages", strategy(manyStages(31))),
	)
})

const (
	withSelectors = "NamespaceWithResourceSelectors"
	clusterRole   = `{"group":"rbac.authorization.k8s.io","version":"v1","kind":"ClusterRole","name":"web"}`

	messageV3  = "when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required"
	messageV5  = "only one namespace selector with NamespaceWithResourceSelectors mode is allowed"
	messageV6  = "namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)"
	messageV7  = "when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)"
	messageV9  = "affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is PickFixed"
	messageV10 = "clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll"
	messageV11 = "clusterNames cannot be set and numberOfClusters must be set when placementType is PickN"
)

func expectRefused(err error, message string) {
	GinkgoHelper()
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), "got %v", err)
	Expect(err).To(MatchError(ContainSubstring(message)))
}

// object makes an object of a kind, with its spec as JSON and a name of its own.
func object(group, kind, spec string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(group + "/v1beta1")
	object.SetKind(kind)
	object.SetGenerateName("rule-")
	if !strings.HasPrefix(kind, "Cluster") && !strings.HasPrefix(kind, "Member") {
		object.SetNamespace(namespace)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(spec), &fields); err != nil {
		panic(fmt.Sprintf("spec of a %s: %v: %s", kind, err, spec))
	}
	object.Object["spec"] = fields
	return object
}

func placement(kind, spec string) *unstructured.Unstructured {
	return object("placement.kubernetes-fleet.io", kind, spec)
}

func crp(spec string) *unstructured.Unstructured { return placement("ClusterResourcePlacement", spec) }

func rp(spec string) *unstructured.Unstructured { return placement("ResourcePlacement", spec) }

func policy(policy string) *unstructured.Unstructured {
	return crp(`{"resourceSelectors":[` + clusterRole + `],"policy":` + policy + `}`)
}

func memberCluster() *unstructured.Unstructured {
	return object("cluster.kubernetes-fleet.io", "MemberCluster", `{"identity":{"kind":"ServiceAccount","name":"agent"}}`)
}

func namespaceNamed(scope string) string {
	return `{"group":"","version":"v1","kind":"Namespace","name":"web","selectionScope":"` + scope + `"}`
}

func budget(spec string) *unstructured.Unstructured {
	return placement("ClusterResourcePlacementDisruptionBudget", spec)
}

func eviction() *unstructured.Unstructured {
	return placement("ClusterResourcePlacementEviction", `{"placementName":"web","clusterName":"member-1"}`)
}

func approval(kind string) *unstructured.Unstructured {
	return placement(kind, `{"parentStageRollout":"run","targetStage":"canary"}`)
}

func updateRun(kind string) *unstructured.Unstructured {
	return placement(kind, `{"placementName":"web","resourceSnapshotIndex":"1","stagedRolloutStrategyName":"slow"}`)
}

func strategy(stages string) *unstructured.Unstructured {
	return placement("ClusterStagedUpdateStrategy", `{"stages":`+stages+`}`)
}

func manyStages(n int) string {
	stages := make([]string, n)
	for i := range stages {
		stages[i] = fmt.Sprintf(`{"name":"stage%d"}`, i)
	}
	return "[" + strings.Join(stages, ",") + "]"
}

// overrideOf makes an override of a kind for a placement, or for all (null).
func overrideOf(kind, placementRef string) *unstructured.Unstructured {
	o := placement(kind, overrideSpec(kind, placementRef))
	if placementRef == "null" {
		unstructured.RemoveNestedField(o.Object, "spec", "placement")
	}
	return o
}

func overrideSpec(kind, placementRef string) string {
	selectors := "resourceSelectors"
	if kind == "ClusterResourceOverride" {
		selectors = "clusterResourceSelectors"
	}
	return `{"placement":` + placementRef + `,"` + selectors + `":[` + clusterRole + `],"policy":{"overrideRules":[{"overrideType":"Delete"}]}}`
}

func overrideSnapshot(kind string) *unstructured.Unstructured {
	return placement(kind+"Snapshot", `{"overrideHash":"aGFzaA==","overrideSpec":`+overrideSpec(kind, `{"name":"web"}`)+`}`)
}

func named(object *unstructured.Unstructured, length int) *unstructured.Unstructured {
	object.SetGenerateName("")
	object.SetName(strings.Repeat("n", length))
	return object
}

func with(object *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		panic(err)
	}
	return object
}
