// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stored makes what a hub stores of a large fleet, with the status that gateway and
// agents would have written: for what only reads a hub, since a thousand agents that bring it
// about take many minutes. Objects are values; Write puts them on a hub, which has to have
// Kinds and nobody who acts on them.
package stored

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	pluginhub "fleetgate.io/fleetgate/pkg/inspect/overview"
)

const (
	// atOnce is how many objects are written at a time.
	atOnce = 32
	// servedWithin is how long a hub may take to serve kinds that it was given.
	servedWithin = time.Minute
)

// Kinds are those that a hub has to have. The gateway's own is one of them: its answers are
// stored, too, as nobody is there to give them.
func Kinds() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	kinds, err := crds.ForHub(clusterv1beta1.GroupVersion.Group, placementv1beta1.GroupVersion.Group)
	if err != nil {
		return nil, err
	}
	return append(kinds, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clustergateways." + gatewayv1alpha1.GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gatewayv1alpha1.GroupVersion.Group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "ClusterGateway", Plural: "clustergateways"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gatewayv1alpha1.GroupVersion.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	}), nil
}

// MemberName is that of the member with a number.
func MemberName(i int) string { return fmt.Sprintf("member-%d", i) }

// PlacementName is that of the placement with a number.
func PlacementName(i int) string { return fmt.Sprintf("placement-%d", i) }

// Member is one that has joined; of each forty the eighth is silent.
func Member(i int) *clusterv1beta1.MemberCluster {
	m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: MemberName(i), Labels: map[string]string{"region": []string{"asia", "eu", "us"}[i%3], "env": "production"}}}
	m.Spec.Identity.Kind, m.Spec.Identity.APIGroup, m.Spec.Identity.Name = "User", "rbac.authorization.k8s.io", "someone"
	m.Status.Conditions = conditions("", clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined)
	if i%40 == 7 {
		m.Status.Conditions[1].Status, m.Status.Conditions[1].Message = metav1.ConditionUnknown, "no heartbeat since noon"
	}
	m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: conditions("", "Joined", "Healthy", "TunnelConnected"), LastReceivedHeartbeat: metav1.Now()}}
	m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.PropertyNodeCount:         {Value: fmt.Sprint(1 << (i % 8)), ObservationTime: metav1.Now()},
		clusterv1beta1.PropertyAgentVersion:      {Value: "v0.1.0", ObservationTime: metav1.Now()},
		clusterv1beta1.PropertyKubernetesVersion: {Value: "v1.36.3", ObservationTime: metav1.Now()},
	}
	return m
}

// Gateway is what a gateway would say of a member's way in: that it works.
func Gateway(i int) *gatewayv1alpha1.ClusterGateway {
	return &gatewayv1alpha1.ClusterGateway{ObjectMeta: metav1.ObjectMeta{Name: MemberName(i)}, Status: gatewayv1alpha1.ClusterGatewayStatus{Healthy: true}}
}

// Seat is the namespace of a member. What is in it can be made once it is there.
func Seat(i int) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(MemberName(i))}}
}

// Lease is that of a member's agent.
func Lease(i int) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Seat(i).Name, Name: clusterv1beta1.AgentLease}}
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	return lease
}

// Placement is a healthy one, or one that none of that many members could apply.
func Placement(i, refusing int) *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: PlacementName(i)}}
	p.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: p.Name}}
	p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll}
	p.Status.Conditions = conditions("ClusterResourcePlacement", "Scheduled", "Applied", "Available")
	if refusing == 0 {
		return p
	}
	p.Status.Conditions = p.Status.Conditions[:1]
	for j := range refusing {
		p.Status.PlacementStatuses = append(p.Status.PlacementStatuses, placementv1beta1.PerClusterPlacementStatus{ClusterName: MemberName(j), Conditions: refusals()[3:]})
	}
	return p
}

// Binding brings a placement to a member, which could not apply it if it is refused.
func Binding(placement, member int, refused bool) *placementv1beta1.ClusterResourceBinding {
	of := PlacementName(placement)
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: of + "-" + MemberName(member), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: of}}}
	b.Spec.TargetCluster, b.Spec.State = MemberName(member), placementv1beta1.BindingBound
	b.Spec.ResourceSnapshotName, b.Spec.SchedulingPolicySnapshotName = of+"-0-snapshot", of+"-0"
	b.Status.Conditions = outcome(refused)
	return b
}

// Work is what a member gets of a placement: a namespace with two ConfigMaps, the second of which
// it did not apply if it is refused.
func Work(placement, member int, refused bool) *placementv1beta1.Work {
	of := PlacementName(placement)
	w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: Seat(member).Name, Name: of + "-work", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: of}}}
	for ordinal, name := range []string{"", "one", "two"} {
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, of)
		id := placementv1beta1.WorkResourceIdentifier{Ordinal: ordinal, Version: "v1", Kind: "Namespace", Resource: "namespaces", Name: of}
		if name != "" {
			text = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q},"data":{"payload":%q}}`, of, name, strings.Repeat("x", 1<<10))
			id.Kind, id.Resource, id.Namespace, id.Name = "ConfigMap", "configmaps", of, name
		}
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
		w.Status.ManifestConditions = append(w.Status.ManifestConditions, placementv1beta1.ManifestCondition{Identifier: id, Conditions: outcome(refused && name == "two")[3:]})
	}
	w.Status.Conditions = outcome(refused)[3:]
	return w
}

// conditions are True.
func conditions(prefix string, types ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range types {
		all = append(all, metav1.Condition{Type: prefix + kind, Status: metav1.ConditionTrue, Reason: "AsItShouldBe", Message: strings.Repeat("all healthy ", 8), LastTransitionTime: metav1.Now()})
	}
	return all
}

// outcome are the conditions of something that is available, or could not be applied.
func outcome(refused bool) []metav1.Condition {
	if refused {
		return refusals()
	}
	return conditions("", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied", "Available")
}

func refusals() []metav1.Condition {
	return append(conditions("", "RolloutStarted", "Overridden", "WorkSynchronized"), metav1.Condition{
		Type: "Applied", Status: metav1.ConditionFalse, Reason: "NotAllWorkHaveBeenApplied", Message: strings.Repeat("exceeded quota ", 10), LastTransitionTime: metav1.Now(),
	})
}

// Client is one of a hub that has just been given Kinds: it waits until they are served.
func Client(ctx context.Context, config *rest.Config) (client.Client, error) {
	kinds, err := pluginhub.Scheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	var hub client.Client
	var unserved error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, servedWithin, true, func(ctx context.Context) (bool, error) {
		hub, unserved = clientOf(ctx, config, kinds)
		return unserved == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until the hub serves its kinds: %w", errors.Join(err, unserved))
	}
	return hub, nil
}

func clientOf(ctx context.Context, config *rest.Config, kinds *runtime.Scheme) (client.Client, error) {
	hub, err := client.New(config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, err
	}
	for _, list := range []client.ObjectList{
		&clusterv1beta1.MemberClusterList{}, &placementv1beta1.ClusterResourcePlacementList{}, &placementv1beta1.ClusterResourceBindingList{},
		&placementv1beta1.WorkList{}, &gatewayv1alpha1.ClusterGatewayList{},
	} {
		err = errors.Join(err, hub.List(ctx, list))
	}
	return hub, err
}

// Write makes objects with their status, many at a time and in no order.
func Write(ctx context.Context, hub client.Client, objects []client.Object) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, object := range objects {
		group.Go(func() error { return write(ctx, hub, object) })
	}
	return group.Wait()
}

func write(ctx context.Context, hub client.Client, object client.Object) error {
	withStatus, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", object)
	}
	if err := hub.Create(ctx, object); err != nil {
		return fmt.Errorf("making %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	switch object.(type) {
	case *corev1.Namespace, *coordinationv1.Lease, *gatewayv1alpha1.ClusterGateway:
		return nil // They have all that they have from the beginning.
	}
	withStatus.SetResourceVersion(object.GetResourceVersion())
	if err := hub.Status().Update(ctx, withStatus); err != nil {
		return fmt.Errorf("writing the status of %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
