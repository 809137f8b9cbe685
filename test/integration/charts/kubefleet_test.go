// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/test/support/env"
)

// kubefleet is a hub and a member as KubeFleet's agents leave them when they are stopped.
// Labels, annotations, finalizers and conditions are written out: they are those agents',
// whatever ours are called.
type kubefleet struct {
	hub, member     *env.Cluster
	onHub, onMember client.Client
	// token is that of member-1's identity on the hub.
	token string
}

// then is when it all was written.
const then = "2026-01-05T10:00:00Z"

// put creates an object, and its status if it is written with one.
func put(ctx context.Context, c client.Client, format string, args ...any) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(fmt.Appendf(nil, format, args...), &object.Object)).To(Succeed())
	status := object.Object["status"]
	delete(object.Object, "status")
	// A kind that was just defined is not served at once.
	Eventually(func() error { return c.Create(ctx, object) }).Should(Succeed())
	if status != nil {
		object.Object["status"] = status
		Expect(c.Status().Update(ctx, object)).To(Succeed())
	}
	return object
}

// conditions are True, each a type and a reason with an equals sign between.
func conditions(all ...string) string {
	var texts []string
	for _, one := range all {
		kind, reason, _ := strings.Cut(one, "=")
		texts = append(texts, fmt.Sprintf(`{type: %s, status: "True", reason: %s, message: "", observedGeneration: 1, lastTransitionTime: %q}`, kind, reason, then))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// ownedBy is a list with one owner reference.
func ownedBy(owner *unstructured.Unstructured, controller bool) string {
	return fmt.Sprintf("[{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: %t, blockOwnerDeletion: true}]",
		owner.GetAPIVersion(), owner.GetKind(), owner.GetName(), owner.GetUID(), controller)
}

// define installs definitions as a Helm chart does.
func define(ctx context.Context, c client.Client, release string, keep func(group, name string) bool) {
	GinkgoHelper()
	all, err := crds.All()
	Expect(err).NotTo(HaveOccurred())
	for _, definition := range all {
		if !keep(definition.Spec.Group, definition.Name) {
			continue
		}
		if strings.HasPrefix(definition.Name, "clusterschedulingpolicysnapshots.") {
			// Theirs take a PickN without the number of clusters, and are written without.
			for _, version := range definition.Spec.Versions {
				spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
				policy := spec.Properties["policy"]
				policy.XValidations = nil
				spec.Properties["policy"] = policy
			}
		}
		definition.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		definition.Annotations = map[string]string{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace}
		Expect(c.Create(ctx, definition)).To(Succeed())
	}
}

// agentOf is a Deployment with what its chart makes beside it.
func agentOf(ctx context.Context, c client.Client, name string) {
	put(ctx, c, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: fleet-system, name: %s-sa}}`, name)
	put(ctx, c, `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: fleet-system, name: %[1]s, labels: {app.kubernetes.io/managed-by: Helm}}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: %[1]s}}
  template:
    metadata: {labels: {app.kubernetes.io/name: %[1]s}}
    spec: {serviceAccountName: %[1]s-sa, containers: [{name: %[1]s, image: example.org/%[1]s}]}`, name)
	put(ctx, c, `
apiVersion: v1
kind: Secret
type: helm.sh/release.v1
metadata: {namespace: fleet-system, name: sh.helm.release.v1.%[1]s.v1, labels: {owner: helm, name: %[1]s, status: deployed, version: "1"}}
stringData: {release: "not looked at"}`, name)
}

// plant makes all of it. The webhooks come last: nobody answers them.
func (k *kubefleet) plant(ctx context.Context) {
	GinkgoHelper()
	for _, c := range []client.Client{k.onHub, k.onMember} {
		put(ctx, c, `{apiVersion: v1, kind: Namespace, metadata: {name: fleet-system}}`)
	}
	define(ctx, k.onHub, "hub-agent", func(group, name string) bool {
		return (strings.HasSuffix(group, ".kubernetes-fleet.io") || group == "multicluster.x-k8s.io") && name != crds.AppliedWorks
	})
	define(ctx, k.onMember, "member-agent", func(_, name string) bool { return name == crds.AppliedWorks })
	agentOf(ctx, k.onHub, "hub-agent")
	agentOf(ctx, k.onMember, "member-agent")
	put(ctx, k.onHub, `{apiVersion: v1, kind: Service, metadata: {namespace: fleet-system, name: fleetwebhook}, spec: {ports: [{port: 9443}], selector: {app.kubernetes.io/name: hub-agent}}}`)
	put(ctx, k.onHub, `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {namespace: fleet-system, name: 136224848560.hub.fleet.azure.com}
spec: {holderIdentity: hub-agent-0, leaseDurationSeconds: 60, renewTime: "2026-01-05T10:00:00.000000Z"}`)

	for _, member := range []string{"member-1", "member-2"} {
		k.plantMember(ctx, member)
	}
	put(ctx, k.onHub, `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: fleet-system, name: member-1-access, annotations: {kubernetes.io/service-account.name: member-1-access}}}`)
	Eventually(func(g Gomega) {
		secret := &corev1.Secret{}
		g.Expect(k.onHub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "member-1-access"}, secret)).To(Succeed())
		k.token = string(secret.Data[corev1.ServiceAccountTokenKey])
		g.Expect(k.token).NotTo(BeEmpty())
	}).Should(Succeed())
	put(ctx, k.onMember, `{apiVersion: v1, kind: Secret, metadata: {namespace: fleet-system, name: hub-kubeconfig-secret}, stringData: {token: %s}}`, k.token)

	k.plantResources(ctx)
	k.plantPlacement(ctx, "web", `{placementType: PickAll, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}]}}}}`, "", "member-1")
	k.plantPlacement(ctx, "few", `{placementType: PickN, numberOfClusters: 1}`, `kubernetes-fleet.io/number-of-clusters: "1"`, "member-1")
	k.plantPlacement(ctx, "everywhere", "", "", "member-1", "member-2")

	const webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sWebhookConfiguration
metadata: {name: %[2]s, labels: {app.kubernetes.io/managed-by: Helm, admissions.enforcer/disabled: "true"}}
webhooks:
- name: placements.fleet.azure.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: %[3]s
  timeoutSeconds: 1
  clientConfig: {service: {namespace: fleet-system, name: fleetwebhook, port: 9443, path: /validate}}
  rules: [{apiGroups: [placement.kubernetes-fleet.io], apiVersions: ["*"], resources: [clusterresourceplacements], operations: [CREATE, UPDATE, DELETE]}]`
	put(ctx, k.onHub, webhook, "Mutating", "fleet-mutating-webhook-configuration", "Ignore")
	put(ctx, k.onHub, webhook, "Validating", "fleet-validating-webhook-configuration", "Fail")
	put(ctx, k.onHub, webhook, "Validating", "fleet-guard-rail-webhook-configuration", "Ignore")
}

func (k *kubefleet) plantMember(ctx context.Context, name string) {
	GinkgoHelper()
	put(ctx, k.onHub, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: fleet-system, name: %s-access}}`, name)
	reported := fmt.Sprintf(`{type: MemberAgent, lastReceivedHeartbeat: %q, conditions: %s}`, then,
		conditions("Joined=InternalMemberClusterJoined", "Healthy=InternalMemberClusterHealthy"))
	env := map[string]string{"member-1": "prod", "member-2": "test"}[name]
	mc := put(ctx, k.onHub, `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata:
  name: %[1]s
  labels: {env: %[2]s, kubernetes-fleet.io/member-name: %[1]s}
  finalizers: [kubernetes-fleet.io/membercluster-finalizer, kubernetes-fleet.io/cluster-profile-cleanup]
spec:
  identity: {kind: ServiceAccount, namespace: fleet-system, name: %[1]s-access}
  heartbeatPeriodSeconds: 15
status:
  conditions: %[3]s
  agentStatus: [%[4]s]
  properties: {kubernetes-fleet.io/node-count: {value: "1", observationTime: %[5]q}}`,
		name, env, conditions("ReadyToJoin=MemberClusterReadyToJoin", "Joined=MemberClusterJoined"), reported, then)
	put(ctx, k.onHub, `{apiVersion: v1, kind: Namespace, metadata: {name: fleet-member-%s, labels: {fleet.azure.com/managed-by: hub, kubernetes-fleet.io/is-fleet-resource: "true"}, ownerReferences: %s}}`,
		name, ownedBy(mc, true))
	put(ctx, k.onHub, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: fleet-member-%[1]s, name: fleet-role-%[1]s}
rules:
- {apiGroups: [cluster.kubernetes-fleet.io, placement.kubernetes-fleet.io, networking.fleet.azure.com], resources: ["*"], verbs: ["*"]}
- {apiGroups: [""], resources: [events], verbs: [get, list, update, patch, watch, create]}`, name)
	put(ctx, k.onHub, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: fleet-member-%[1]s, name: fleet-rolebinding-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: fleet-role-%[1]s}
subjects: [{kind: ServiceAccount, namespace: fleet-system, name: %[1]s-access}]`, name)
	put(ctx, k.onHub, `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: InternalMemberCluster
metadata: {namespace: fleet-member-%[1]s, name: %[1]s, ownerReferences: %[2]s}
spec: {state: Join, heartbeatPeriodSeconds: 15}
status: {agentStatus: [%[3]s]}`, name, ownedBy(mc, true), reported)
	put(ctx, k.onHub, `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {namespace: fleet-system, name: %[1]s, labels: {x-k8s.io/cluster-manager: KubeFleet}}
spec: {displayName: %[1]s, clusterManager: {name: KubeFleet}}`, name)
}

// plantResources makes what users have on the hub: a namespace for each placement.
func (k *kubefleet) plantResources(ctx context.Context) {
	GinkgoHelper()
	for _, name := range []string{"web", "few", "everywhere"} {
		put(ctx, k.onHub, `{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, name)
		put(ctx, k.onHub, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: settings}, data: {color: blue}}`, name)
	}
	put(ctx, k.onHub, `{apiVersion: v1, kind: Service, metadata: {namespace: web, name: web}, spec: {ports: [{port: 80}], selector: {app: web}}}`)
	put(ctx, k.onHub, `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: web, name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.org/web}]}`)
}

// resourcesOf are the placed objects of a namespace, without what the hub's servers made.
func (k *kubefleet) resourcesOf(ctx context.Context, name string) []*unstructured.Unstructured {
	GinkgoHelper()
	kinds := []string{"v1 Namespace /" + name, "v1 ConfigMap " + name + "/settings"}
	if name == "web" {
		kinds = append(kinds, "v1 Service web/web", "apps/v1 Deployment web/web")
	}
	var all []*unstructured.Unstructured
	for _, text := range kinds {
		words := strings.Fields(text)
		in, called, _ := strings.Cut(words[2], "/")
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(words[0])
		object.SetKind(words[1])
		Expect(k.onHub.Get(ctx, client.ObjectKey{Namespace: in, Name: called}, object)).To(Succeed())
		selection.Strip(object)
		all = append(all, object)
	}
	return all
}

// noOverrides is the hash of no overrides at all.
const noOverrides = "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"

// plantPlacement makes a placement that is available on its members, with all that leads
// there. Hashes are of another rule than ours.
func (k *kubefleet) plantPlacement(ctx context.Context, name, policy, counted string, members ...string) {
	GinkgoHelper()
	var specified, recorded string
	if policy != "" {
		specified = ", policy: " + policy
		recorded = "policy: " + strings.Replace(policy, ", numberOfClusters: 1", "", 1) + ","
	}
	objects := k.resourcesOf(ctx, name)
	manifests, err := json.Marshal(objects)
	Expect(err).NotTo(HaveOccurred())
	stages := []string{"RolloutStarted=RolloutStarted", "Overridden=NoOverrideSpecified", "WorkSynchronized=AllWorkSynced", "Applied=AllWorkHaveBeenApplied", "Available=AllWorkAreAvailable"}
	var placed, decided []string
	for _, member := range members {
		placed = append(placed, fmt.Sprintf(`{clusterName: %s, observedResourceIndex: "0", conditions: %s}`, member, conditions(append([]string{"Scheduled=Scheduled"}, stages...)...)))
		decided = append(decided, fmt.Sprintf("{clusterName: %s, selected: true, reason: picked by scheduling policy}", member))
	}
	crp := put(ctx, k.onHub, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: %[1]s, finalizers: [kubernetes-fleet.io/crp-cleanup, kubernetes-fleet.io/scheduler-cleanup]}
spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: %[1]s}], revisionHistoryLimit: 10%[2]s}
status:
  observedResourceIndex: "0"
  conditions: %[3]s
  placementStatuses: [%[4]s]`, name, specified,
		conditions("ClusterResourcePlacementScheduled=SchedulingPolicyFulfilled", "ClusterResourcePlacementRolloutStarted=RolloutStarted", "ClusterResourcePlacementOverridden=NoOverrideSpecified",
			"ClusterResourcePlacementWorkSynchronized=WorkSynchronized", "ClusterResourcePlacementApplied=ApplySucceeded", "ClusterResourcePlacementAvailable=ResourceAvailable"),
		strings.Join(placed, ", "))
	put(ctx, k.onHub, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterSchedulingPolicySnapshot
metadata:
  name: %[1]s-0
  labels: {kubernetes-fleet.io/parent-CRP: %[1]s, kubernetes-fleet.io/is-latest-snapshot: "true", kubernetes-fleet.io/policy-index: "0"}
  annotations: {kubernetes-fleet.io/CRP-generation: "1", %[2]s}
  ownerReferences: %[3]s
spec: {%[4]s policyHash: %[5]s}
status: {observedCRPGeneration: 1, conditions: %[6]s, targetClusters: [%[7]s]}`, name, counted, ownedBy(crp, true), recorded,
		base64.StdEncoding.EncodeToString([]byte("made by another rule")), conditions("Scheduled=SchedulingPolicyFulfilled"), strings.Join(decided, ", "))
	put(ctx, k.onHub, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourceSnapshot
metadata:
  name: %[1]s-0-snapshot
  labels: {kubernetes-fleet.io/parent-CRP: %[1]s, kubernetes-fleet.io/is-latest-snapshot: "true", kubernetes-fleet.io/resource-index: "0"}
  annotations: {kubernetes-fleet.io/resource-hash: made-by-another-rule, kubernetes-fleet.io/number-of-resource-snapshots: "1", kubernetes-fleet.io/number-of-enveloped-object: "0"}
  ownerReferences: %[2]s
spec: {selectedResources: %[3]s}`, name, ownedBy(crp, true), manifests)
	for _, member := range members {
		k.plantBinding(ctx, name, member, string(manifests), stages)
		if member == "member-1" {
			k.plantApplied(ctx, name, objects)
		}
	}
}

func (k *kubefleet) plantBinding(ctx context.Context, placement, member, manifests string, stages []string) {
	GinkgoHelper()
	binding := put(ctx, k.onHub, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourceBinding
metadata:
  name: %[1]s-%[2]s-0a1b2c3d
  labels: {kubernetes-fleet.io/parent-CRP: %[1]s}
  finalizers: [kubernetes-fleet.io/scheduler-crb-cleanup, kubernetes-fleet.io/work-cleanup]
spec:
  state: Bound
  resourceSnapshotName: %[1]s-0-snapshot
  schedulingPolicySnapshotName: %[1]s-0
  targetCluster: %[2]s
  clusterDecision: {clusterName: %[2]s, selected: true, reason: picked by scheduling policy}
  applyStrategy: {type: ClientSideApply, comparisonOption: PartialComparison, whenToApply: Always, whenToTakeOver: Always}
status: {conditions: %[3]s}`, placement, member, conditions(stages...))
	put(ctx, k.onHub, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: Work
metadata:
  namespace: fleet-member-%[2]s
  name: %[1]s-work
  labels: {kubernetes-fleet.io/parent-CRP: %[1]s, kubernetes-fleet.io/parent-resource-binding: %[3]s, kubernetes-fleet.io/parent-resource-snapshot-index: "0"}
  annotations:
    kubernetes-fleet.io/parent-resource-snapshot-name: %[1]s-0-snapshot
    kubernetes-fleet.io/parent-resource-override-snapshot-hash: %[4]s
    kubernetes-fleet.io/parent-cluster-resource-override-snapshot-hash: %[4]s
  finalizers: [kubernetes-fleet.io/work-cleanup]
  ownerReferences: %[5]s
spec:
  workload: {manifests: %[6]s}
  applyStrategy: {type: ClientSideApply, comparisonOption: PartialComparison, whenToApply: Always, whenToTakeOver: Always}
status: {conditions: %[7]s}`, placement, member, binding.GetName(), noOverrides, ownedBy(binding, false), manifests,
		conditions("Applied=AllManifestsApplied", "Available=AllManifestsAvailable"))
}

// plantApplied makes what the member-agent makes of a Work on its member.
func (k *kubefleet) plantApplied(ctx context.Context, placement string, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	record := put(ctx, k.onMember, `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: AppliedWork, metadata: {name: %[1]s-work}, spec: {workName: %[1]s-work, workNamespace: fleet-member-member-1}}`, placement)
	plurals := map[string]string{"Namespace": "namespaces", "ConfigMap": "configmaps", "Service": "services", "Deployment": "deployments"}
	var applied []string
	for ordinal, object := range objects {
		object = object.DeepCopy()
		metadata := object.Object["metadata"].(map[string]any)
		metadata["annotations"] = map[string]any{"kubernetes-fleet.io/spec-hash": "made-by-another-rule"}
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": record.GetAPIVersion(), "kind": record.GetKind(), "name": record.GetName(), "uid": string(record.GetUID()), "blockOwnerDeletion": true,
		}}
		last, err := object.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		metadata["annotations"].(map[string]any)["kubernetes-fleet.io/last-applied-configuration"] = string(last)
		Expect(k.onMember.Create(ctx, object, client.FieldOwner("work-api-agent"))).To(Succeed())
		group := object.GroupVersionKind().Group
		applied = append(applied, fmt.Sprintf("{ordinal: %d, group: %q, version: v1, kind: %s, resource: %s, namespace: %q, name: %s, uid: %s}",
			ordinal, group, object.GetKind(), plurals[object.GetKind()], object.GetNamespace(), object.GetName(), object.GetUID()))
	}
	var status map[string]any
	Expect(yaml.Unmarshal(fmt.Appendf(nil, "{appliedResources: [%s]}", strings.Join(applied, ", ")), &status)).To(Succeed())
	record.Object["status"] = status
	Expect(k.onMember.Status().Update(ctx, record)).To(Succeed())
}

// identities are the UIDs of all objects of some kinds, none of which is being deleted, and
// of workloads the spec. Their generation would not do: with Deployments the API server
// counts annotations in.
func identities(ctx context.Context, c client.Client, in string, kinds ...string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, kind := range kinds {
		version, kind, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(kind + "List")
		Expect(c.List(ctx, list, client.InNamespace(in))).To(Succeed())
		for i := range list.Items {
			object := &list.Items[i]
			Expect(object.GetDeletionTimestamp()).To(BeNil(), "%s %s/%s is being deleted", kind, object.GetNamespace(), object.GetName())
			value := string(object.GetUID())
			if kind == "Deployment" {
				value += fmt.Sprint(object.Object["spec"])
			}
			found[fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())] = value
		}
	}
	return found
}
