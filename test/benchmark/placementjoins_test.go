// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// leastJoin are the least writes for a member's join.
type leastJoin struct {
	client client.Client
	agents *agents
	member *clusterv1beta1.MemberCluster
	// namespace is the member's; inside are the objects in it, in order of creation.
	namespace *corev1.Namespace
	inside    []client.Object
}

// writes is the number of writes: one per object, two by the agent (report and Lease), and two of
// the MemberCluster's status, before the agent and after.
func (l *leastJoin) writes() int { return 2 + len(l.inside) + 2 + 2 }

// leastJoin copies the objects of the first member on the hub.
func (p *placementBed) leastJoin(ctx context.Context) (*leastJoin, error) {
	name := p.memberNames()[0]
	l := &leastJoin{client: p.hub, agents: p.agents, member: &clusterv1beta1.MemberCluster{}, namespace: &corev1.Namespace{}}
	seat := clusterv1beta1.MemberNamespace(name)
	l.inside = []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.AgentAccount}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.AgentCredentialSecret}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.AgentLease}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.RoleName(name)}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.RoleBindingName(name)}},
		&corev1.ResourceQuota{},
		&clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
	}
	errs := []error{
		p.hub.Get(ctx, client.ObjectKey{Name: name}, l.member),
		p.hub.Get(ctx, client.ObjectKey{Name: seat}, l.namespace),
	}
	var quotas corev1.ResourceQuotaList
	errs = append(errs, p.hub.List(ctx, &quotas, client.InNamespace(seat)))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, object := range l.inside {
		if quota, ok := object.(*corev1.ResourceQuota); ok {
			quota.Name = quotas.Items[0].Name
		}
		errs = append(errs, p.hub.Get(ctx, client.ObjectKey{Namespace: seat, Name: object.GetName()}, object))
	}
	for _, object := range append([]client.Object{l.member, l.namespace}, l.inside...) {
		object.SetResourceVersion("")
		object.SetUID("")
		object.SetOwnerReferences(nil)
		object.SetManagedFields(nil)
	}
	return l, errors.Join(errs...)
}

// write joins as many members.
func (l *leastJoin) write(ctx context.Context, members int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i := range members {
		group.Go(func() error { return l.join(ctx, fmt.Sprintf("bare-%04d", i)) })
	}
	return group.Wait()
}

func (l *leastJoin) join(ctx context.Context, name string) error {
	member, namespace := l.member.DeepCopy(), l.namespace.DeepCopy()
	member.Name, namespace.Name = name, clusterv1beta1.MemberNamespace(name)
	member.Spec.Identity.Namespace = namespace.Name
	for _, object := range []client.Object{member, namespace} {
		if err := l.client.Create(ctx, object); err != nil {
			return err
		}
	}
	for _, pattern := range l.inside {
		object := pattern.DeepCopyObject().(client.Object)
		object.SetNamespace(namespace.Name)
		if _, ok := object.(*clusterv1beta1.InternalMemberCluster); ok {
			object.SetName(name)
		}
		if err := l.client.Create(ctx, object); err != nil {
			return err
		}
	}
	member.Status.Conditions = l.member.Status.Conditions[:1]
	if err := l.client.Status().Update(ctx, member); err != nil {
		return err
	}
	if err := l.agents.beat(ctx, dueBeat{member: name}); err != nil {
		return err
	}
	member.Status = l.member.Status
	return l.client.Status().Update(ctx, member)
}
