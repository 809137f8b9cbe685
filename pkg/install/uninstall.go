// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// LeaderLease is the prefix of the name of the Lease of a gateway's leader.
const LeaderLease = "fleetgate-gateway"

// RunningError reports that a gateway is still running, which would re-create removed objects.
type RunningError struct{ Lease, Holder string }

func (e *RunningError) Error() string {
	return fmt.Sprintf("a gateway runs (Lease %s is held by %s) and would write everything again: stop it first", e.Lease, e.Holder)
}

// Uninstaller removes the objects that route requests to a gateway. It needs no running gateway.
type Uninstaller struct {
	// Client reads from the API server.
	Client client.Client
	// Namespace is the gateway's namespace.
	Namespace string
	// Clock is for the expiry of Leases.
	Clock clock.PassiveClock
	// Removed is called for each removed object.
	Removed func(kind, name string)
}

// Uninstall first removes objects that reject requests: webhook configurations, conversions, then
// APIServices, which block the deletion of every namespace while nobody serves them, then policies.
// CustomResourceDefinitions and their objects stay. After a *RunningError nothing was done.
func (u *Uninstaller) Uninstall(ctx context.Context) error {
	if err := u.refuseIfRunning(ctx); err != nil {
		return err
	}
	if err := u.stopConversion(ctx); err != nil {
		return err
	}
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.MutatingWebhookConfigurationList{},
		&admissionregistrationv1.ValidatingWebhookConfigurationList{},
		&apiregistrationv1.APIServiceList{},
		&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
		&admissionregistrationv1.ValidatingAdmissionPolicyList{},
	} {
		if err := u.removeAll(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

func (u *Uninstaller) refuseIfRunning(ctx context.Context) error {
	var leases coordinationv1.LeaseList
	if err := u.Client.List(ctx, &leases, client.InNamespace(u.Namespace)); err != nil {
		return fmt.Errorf("looking whether a gateway runs: %w", err)
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if strings.HasPrefix(lease.Name, LeaderLease) && isHeld(lease, u.Clock.Now()) {
			return &RunningError{Lease: lease.Namespace + "/" + lease.Name, Holder: *lease.Spec.HolderIdentity}
		}
	}
	return nil
}

// removeAll removes every object of a kind with our label. A failure for one does not stop the others.
func (u *Uninstaller) removeAll(ctx context.Context, list client.ObjectList) error {
	if err := u.Client.List(ctx, list, client.MatchingLabels{LabelManagedBy: ManagedBy}); err != nil {
		return fmt.Errorf("looking for what to remove: %w", err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("looking for what to remove: %w", err)
	}
	var failures []error
	for _, item := range objects {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("looking for what to remove: %T is no object", item)
		}
		kind, err := u.Client.GroupVersionKindFor(object)
		if err != nil {
			return fmt.Errorf("looking for what to remove: %w", err)
		}
		if err := client.IgnoreNotFound(u.Client.Delete(ctx, object)); err != nil {
			failures = append(failures, fmt.Errorf("removing %s %s: %w", kind.Kind, object.GetName(), err))
			continue
		}
		u.Removed(kind.Kind, object.GetName())
	}
	return errors.Join(failures...)
}

// removeObsolete removes objects that this configuration does not need. If the role of the previous
// version does not include an object, that version did not create it, so it is skipped.
func (i *Installer) removeObsolete(ctx context.Context) error {
	for _, object := range i.Obsolete {
		current, err := i.get(ctx, object)
		if apierrors.IsForbidden(err) {
			log.FromContext(ctx).V(2).Info("Skipped an object that the role does not include", "object", object.GetName(), "reason", err.Error())
			continue
		}
		if err != nil {
			return err
		}
		if err := i.removeOurs(ctx, current); err != nil {
			return err
		}
	}
	return nil
}

// removeAllOurs removes our objects; foreign objects with the same name stay.
func (i *Installer) removeAllOurs(ctx context.Context, objects []client.Object) error {
	for _, object := range objects {
		current, err := i.get(ctx, object)
		if err != nil {
			return err
		}
		if err := i.removeOurs(ctx, current); err != nil {
			return err
		}
	}
	return nil
}

// removeOurs removes an object, unless it does not exist or has a foreign owner.
func (i *Installer) removeOurs(ctx context.Context, current *unstructured.Unstructured) error {
	if current == nil || !ours(current) {
		return nil
	}
	uid := current.GetUID()
	err := i.Client.Delete(ctx, current, client.Preconditions(metav1.Preconditions{UID: &uid}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing %s %s: %w", current.GetKind(), current.GetName(), err)
	}
	return nil
}
