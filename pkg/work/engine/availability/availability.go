// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package availability evaluates whether an object on a member is available. It has no side
// effects: [Of] uses only the object as the API server returned it.
//
// Rules per kind follow the reference of the placement API, so that a placement becomes Available
// at the same moment: workloads when every replica runs the latest template, Services when they can
// be reached, data when it exists. Update strategies that keep old replicas, completed runs,
// volumes and custom resources have rules of our own. Kinds without a rule are NotTrackable.
//
// Messages contain no counts, so that a rollout of a hundred replicas is one change of state.
// Messages of controllers are copied as they are: controllers do not repeat them for each retry.
package availability

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// State is the result of an evaluation. Its values are the reasons of the placement API; other
// families map them.
type State string

const (
	// Available means that the object is available.
	Available State = "Available"
	// NotYet means that the object is not available yet.
	NotYet State = "ManifestNotAvailableYet"
	// NotTrackable means that there is no rule for the object. It counts as available after a
	// delay.
	NotTrackable State = "NotTrackable"
	// Failed means that the object does not match the schema of its kind, or that its run failed.
	Failed State = "Failed"
	// Completed means that the object ran to completion and is not run again.
	Completed State = "Completed"
	// CompletionUnknown means that the object is gone and may have run to completion.
	CompletionUnknown State = "CompletionUnknown"
	// HealthCheckInvalid means that an expression of the manifest can never have a result.
	HealthCheckInvalid State = "HealthCheckInvalid"
)

// Finding is a state and a message for people.
type Finding struct {
	State   State
	Message string
}

// Of evaluates an object of any kind.
func Of(object *unstructured.Unstructured) Finding {
	kind := object.GroupVersionKind().GroupKind()
	if isData(kind) {
		return Finding{Available, "The object exists, which is all that its kind can do"}
	}
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return typed(object, deployment)
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		return typed(object, statefulSet)
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return typed(object, daemonSet)
	case schema.GroupKind{Kind: "Service"}:
		return typed(object, service)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return typed(object, customResourceDefinition)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return typed(object, claim)
	case schema.GroupKind{Kind: "PersistentVolume"}:
		return typed(object, volume)
	case schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}:
		return typed(object, podDisruptionBudget)
	}
	if RunsToCompletion(object) {
		return run(object)
	}
	if !isBuiltIn(kind.Group) {
		return custom(object)
	}
	return untracked()
}

func untracked() Finding { return Finding{NotTrackable, "Availability of this kind is not tracked"} }

// isData lists the kinds that are available once they exist.
func isData(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Kind: "Namespace"},
		schema.GroupKind{Kind: "Secret"},
		schema.GroupKind{Kind: "ConfigMap"},
		schema.GroupKind{Kind: "ServiceAccount"},
		schema.GroupKind{Kind: "LimitRange"},
		schema.GroupKind{Kind: "ResourceQuota"},
		schema.GroupKind{Group: "apps", Kind: "ControllerRevision"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
		schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"},
		schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIDriver"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "CSINode"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:
		return true
	}
	return false
}

func typed[T any](object *unstructured.Unstructured, rule func(*T) Finding) Finding {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return Finding{Failed, fmt.Sprintf("The object cannot be read as %s: %v", object.GetKind(), err)}
	}
	return rule(typed)
}

// deployment is available when all replicas run the latest template and are available, and no old
// one remains. A paused Deployment is not updated, so its replicas can run any template.
func deployment(d *appsv1.Deployment) Finding {
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return Finding{NotYet, "The Deployment controller has not seen the latest change yet"}
	case d.Spec.Paused && (d.Status.AvailableReplicas < wanted || d.Status.Replicas < wanted):
		return Finding{NotYet, "The Deployment is paused, and not all replicas are available" + replicaFailure(d)}
	case d.Spec.Paused:
		return Finding{Available, "The Deployment is paused, and all replicas are available: they run the latest template when it resumes"}
	case d.Status.UpdatedReplicas != wanted:
		return Finding{NotYet, "Not all replicas run the latest template yet" + replicaFailure(d)}
	case d.Status.AvailableReplicas != wanted || d.Status.Replicas != wanted:
		return Finding{NotYet, "Not all replicas are available yet" + replicaFailure(d)}
	}
	return Finding{Available, "All replicas run the latest template and are available"}
}

// replicaFailure returns why Pods cannot be created, as a following sentence. If a quota or
// admission rejects Pods, no Pod shows the cause; the Deployment copies it from its ReplicaSet.
func replicaFailure(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return ". " + sentence(c.Reason, c.Message)
		}
	}
	return ""
}

// statefulSet is available when all replicas are, and those that its strategy updates run the
// latest template.
func statefulSet(s *appsv1.StatefulSet) Finding {
	wanted := ptr.Deref(s.Spec.Replicas, 1)
	onDelete := s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	switch {
	case s.Status.ObservedGeneration < s.Generation:
		return Finding{NotYet, "The StatefulSet controller has not seen the latest change yet"}
	case !onDelete && !isUpdated(s, wanted):
		return Finding{NotYet, "Not all replicas run the latest template yet"}
	case s.Status.AvailableReplicas != wanted || onDelete && s.Status.Replicas != wanted:
		return Finding{NotYet, "Not all replicas are available yet"}
	case s.Status.CurrentRevision == s.Status.UpdateRevision:
		return Finding{Available, "All replicas run the latest template and are available"}
	case onDelete:
		return Finding{Available, "All replicas are available. By the update strategy OnDelete each runs the latest template once its Pod was deleted"}
	}
	return Finding{Available, "All replicas are available, and those that the partition of the update strategy lets be updated run the latest template"}
}

// isUpdated reports whether the replicas that a rolling update covers run the latest template:
// those with an ordinal at or above the partition.
func isUpdated(s *appsv1.StatefulSet, wanted int32) bool {
	partition := int32(0)
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition = ptr.Deref(rolling.Partition, 0)
	}
	if partition == 0 || s.Status.CurrentRevision == s.Status.UpdateRevision {
		return s.Status.CurrentRevision == s.Status.UpdateRevision && s.Status.CurrentReplicas == s.Status.UpdatedReplicas
	}
	if s.Spec.Ordinals != nil {
		partition = max(partition-s.Spec.Ordinals.Start, 0)
	}
	return s.Status.UpdatedReplicas >= max(wanted-partition, 0)
}

// daemonSet is available when a Pod of the latest template is available on every selected node.
// With OnDelete the template does not matter, because a Pod is updated only after somebody deletes
// it.
func daemonSet(d *appsv1.DaemonSet) Finding {
	wanted := d.Status.DesiredNumberScheduled
	onDelete := d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return Finding{NotYet, "The DaemonSet controller has not seen the latest change yet"}
	case !onDelete && d.Status.UpdatedNumberScheduled != wanted:
		return Finding{NotYet, "Not all nodes run the latest template yet"}
	case d.Status.NumberAvailable != wanted:
		return Finding{NotYet, "The pods are not available on all nodes yet"}
	case d.Status.UpdatedNumberScheduled != wanted:
		return Finding{Available, "The pods are available on all nodes. By the update strategy OnDelete each runs the latest template once it was deleted"}
	}
	return Finding{Available, "All nodes run the latest template and its pods are available"}
}

// service is available when it has the address that its type provides.
func service(s *corev1.Service) Finding {
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return Finding{NotTrackable, "Availability of a Service of type ExternalName is not tracked"}
	case corev1.ServiceTypeLoadBalancer:
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			if ingress.IP != "" || ingress.Hostname != "" {
				return Finding{Available, "The load balancer has an address"}
			}
		}
		return Finding{NotYet, "The load balancer has no address yet"}
	}
	if s.Spec.ClusterIP == "" {
		return Finding{NotYet, "The Service has no cluster IP yet"}
	}
	return Finding{Available, "The Service has its cluster IP"}
}

// customResourceDefinition is available when its kind is served.
func customResourceDefinition(c *apiextensionsv1.CustomResourceDefinition) Finding {
	for _, wanted := range []apiextensionsv1.CustomResourceDefinitionConditionType{
		apiextensionsv1.NamesAccepted, apiextensionsv1.Established,
	} {
		if !hasTrue(c.Status.Conditions, wanted) {
			return Finding{NotYet, fmt.Sprintf("The CustomResourceDefinition is not %s yet", wanted)}
		}
	}
	return Finding{Available, "The kind is served"}
}

func hasTrue(conditions []apiextensionsv1.CustomResourceDefinitionCondition, wanted apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	for _, c := range conditions {
		if c.Type == wanted {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// podDisruptionBudget is available when its controller has processed the latest specification,
// whatever the result.
func podDisruptionBudget(b *policyv1.PodDisruptionBudget) Finding {
	computed := apimeta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	if computed == nil || b.Status.ObservedGeneration != b.Generation {
		return Finding{NotYet, "The PodDisruptionBudget has not been computed for the latest change yet"}
	}
	return Finding{Available, "The PodDisruptionBudget is in force"}
}
