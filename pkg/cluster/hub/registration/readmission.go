// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// If a hub is lost with its etcd, its agents have credentials that are invalid at the rebuilt hub, and
// no registration token. They still have their keys and the CA of the hub. So that nobody has to visit
// each member, the rebuilt hub encrypts a token with the key on the MemberCluster, which an
// administrator restores from Git and annotates. It stores the token where the agent can read it
// without a credential. Only the agent can decrypt it.

// ReturnControllerName is the name of ReturnReconciler.
const ReturnControllerName = "membercluster.return"

// readmitRetryDelay is the interval of retries while something is missing.
const readmitRetryDelay = 10 * time.Second

// Reasons of the events on a MemberCluster whose agent is readmitted.
const (
	// ReasonReadmitting: the hub has sealed a token for the agent.
	ReasonReadmitting = "Readmitting"
	// ReasonReadmissionFailed is a warning: the hub cannot seal a token.
	ReasonReadmissionFailed = "ReadmissionFailed"
)

// ReturnReconciler readmits agents of a lost hub by their keys.
type ReturnReconciler struct {
	Grants   *GrantReconciler
	Recorder events.EventRecorder
}

var _ reconcile.Reconciler = (*ReturnReconciler)(nil)

// SetupWithManager watches MemberClusters that should be readmitted.
func (r *ReturnReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(ReturnControllerName).
		For(&clusterv1beta1.MemberCluster{}, builder.WithPredicates(predicate.NewPredicateFuncs(isToReturn))).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Grants.Concurrency}).
		Complete(reconcileutil.RetryConflicts(r))
}

func isToReturn(mc client.Object) bool {
	annotations := mc.GetAnnotations()
	if value, ok := annotations[AnnotationReadmit]; ok {
		return value == "true"
	}
	return annotations[deprecatedAnnotationTakeBack] == "true"
}

// Reconcile readmits one member that an administrator annotated.
func (r *ReturnReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	mc, err := getMember(ctx, r.Grants.Live, req.Name)
	if mc == nil || err != nil || !mc.DeletionTimestamp.IsZero() || !isToReturn(mc) {
		return ctrl.Result{}, err
	}
	former, key, err := parseAgentKey(mc.Annotations[AnnotationAgentKey])
	if err != nil {
		r.Recorder.Eventf(mc, nil, corev1.EventTypeWarning, ReasonReadmissionFailed, "Readmit", "%s: %v", AnnotationAgentKey, err)
		return ctrl.Result{}, nil
	}
	if refuseUnready(mc) != nil {
		//lint:ignore nilerr It is being made ready.
		return ctrl.Result{RequeueAfter: reconcileutil.ConflictDelay}, nil
	}
	err = r.leave(ctx, mc, key)
	if apierrors.IsNotFound(err) {
		r.Recorder.Eventf(mc, nil, corev1.EventTypeWarning, ReasonReadmissionFailed, "Readmit",
			"namespace %s does not exist: create it, and allow agents without a credential to get clusterregistrations in it", registrationv1alpha1.ReturningNamespace)
		return ctrl.Result{RequeueAfter: readmitRetryDelay}, nil
	}
	if err != nil {
		return reconcileutil.RequeueOnConflict(ctrl.Result{}, err)
	}
	return ctrl.Result{}, r.done(ctx, mc, former, key)
}

// leave encrypts a token with the key, in a ClusterRegistration that the agent finds by its key.
func (r *ReturnReconciler) leave(ctx context.Context, mc *clusterv1beta1.MemberCluster, key []byte) error {
	bound, err := credentialSecret(ctx, r.Grants.Live, mc.Name)
	if err != nil {
		return err
	}
	if bound == nil {
		return apierrors.NewConflict(corev1.Resource("secrets"), clusterv1beta1.AgentCredentialSecret, fmt.Errorf("it is being created"))
	}
	request := &registrationv1alpha1.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: registrationv1alpha1.ReturningNamespace, Name: registrationv1alpha1.RequestName(key),
			Labels: map[string]string{registrationv1alpha1.LabelReturning: mc.Name},
		},
		Spec: registrationv1alpha1.ClusterRegistrationSpec{PublicKey: key},
	}
	// A previous one may have an expired token.
	if err := client.IgnoreNotFound(r.Grants.Client.Delete(ctx, request.DeepCopy())); err != nil {
		return fmt.Errorf("deleting ClusterRegistration %q: %w", request.Name, err)
	}
	if err := r.Grants.Client.Create(ctx, request); err != nil {
		return fmt.Errorf("creating ClusterRegistration %q: %w", request.Name, err)
	}
	var status registrationv1alpha1.ClusterRegistrationStatus
	if err := r.Grants.seal(ctx, request, mc, bound.UID, &status); err != nil {
		return err
	}
	condition := grantedCondition(nil)
	condition.LastTransitionTime = metav1.NewTime(r.Grants.Clock.Now())
	meta.SetStatusCondition(&status.Conditions, condition)
	return r.Grants.writeStatus(ctx, request, status)
}

// done records on the MemberCluster that it belongs to this hub now, and which hub it replaced.
func (r *ReturnReconciler) done(ctx context.Context, mc *clusterv1beta1.MemberCluster, former string, key []byte) error {
	own, err := r.Grants.agentKey(ctx, key)
	if err != nil {
		return err
	}
	err = reconcileutil.Patch(ctx, r.Grants.Client, mc, func() {
		delete(mc.Annotations, AnnotationReadmit)
		delete(mc.Annotations, deprecatedAnnotationTakeBack)
		if !strings.HasPrefix(own, former+"/") {
			metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1beta1.AnnotationFormerHub, former)
		}
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, AnnotationAgentKey, own)
	}, "readmitting MemberCluster %q", mc.Name)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Sealed a token for the agent with the key of a MemberCluster", "member", mc.Name, "formerHub", former)
	r.Recorder.Eventf(mc, nil, corev1.EventTypeNormal, ReasonReadmitting, "Readmit", "The hub sealed a token for the agent with key %s; the agent reconnects with it", sealing.Fingerprint(key))
	return nil
}

func parseAgentKey(text string) (hub string, key []byte, err error) {
	hub, encoded, found := strings.Cut(text, "/")
	if !found || hub == "" {
		return "", nil, fmt.Errorf("it must be the UID of a hub, a slash and a key, as that hub wrote it")
	}
	if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
		return "", nil, fmt.Errorf("its key is not base64")
	}
	return hub, key, sealing.CheckPublicKey(key)
}
