// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// keepGranted deletes a granted request when its credential is invalid, so that its agent can request
// again.
func (r *GrantReconciler) keepGranted(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (ctrl.Result, error) {
	granted := meta.FindStatusCondition(request.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted)
	if granted == nil {
		return ctrl.Result{}, nil
	}
	revoked := false
	if request.Namespace != registrationv1alpha1.ReturningNamespace { // There it belongs to no Cluster.
		var err error
		if revoked, err = r.isRevoked(ctx, request); err != nil {
			return ctrl.Result{}, err
		}
	}
	left := credentialExpiry(request, granted.LastTransitionTime, r.lifetime()).Sub(r.Clock.Now())
	if !revoked && left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	log.FromContext(ctx).Info("Deleting a ClusterRegistration whose credential has expired or was revoked")
	return ctrl.Result{}, r.forget(ctx, request)
}

// credentialExpiry is the expiry of the credential in a granted request.
func credentialExpiry(request *registrationv1alpha1.ClusterRegistration, granted metav1.Time, lifetime time.Duration) time.Time {
	recorded, err := time.Parse(time.RFC3339, request.Annotations[AnnotationCredentialExpires])
	if err != nil {
		return granted.Add(lifetime)
	}
	return recorded
}

// isRevoked reports whether the credential of a granted request was revoked early: the Cluster or its
// member was deleted, or the Secret to which the credential is bound was re-created. Each of these is a
// watch event that triggers this check, so caches are enough to see that nothing was revoked. An
// apparent revocation is confirmed with the API server, because the grant may be newer than a cache.
func (r *GrantReconciler) isRevoked(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (bool, error) {
	if r.Secrets != nil {
		if revoked, err := isRevokedBy(ctx, request, r.Client, r.Secrets); err != nil || !revoked {
			return false, err
		}
	}
	return isRevokedBy(ctx, request, r.Live, r.Live)
}

// isRevokedBy decides from readers of Clusters and MemberClusters, and of Secrets.
func isRevokedBy(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, clusters, secrets client.Reader) (bool, error) {
	var cluster registrationv1alpha1.Cluster
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Status.ClusterName}
	if found, err := reconcileutil.GetIfExists(ctx, clusters, key, &cluster, "reading Cluster %q", request.Status.ClusterName); !found {
		return err == nil, err
	}
	mc, err := getMember(ctx, clusters, cluster.Annotations[AnnotationMember])
	if err != nil {
		return false, err
	}
	if mc == nil || !isOrigin(mc, &cluster) {
		return true, nil
	}
	bound, err := credentialSecret(ctx, secrets, mc.Name)
	return bound != nil && request.Status.CredentialUID != "" && bound.UID != request.Status.CredentialUID, err
}

// keepRefused deletes a rejected request after its time. Nobody else would, and a token bearer could
// fill the hub with requests.
func (r *GrantReconciler) keepRefused(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, reason string) (ctrl.Result, error) {
	life, ends := refusedLife(reason)
	if !ends {
		return ctrl.Result{}, nil
	}
	if left := life - r.Clock.Since(request.CreationTimestamp.Time); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if reason == registrationv1alpha1.RegistrationReasonWaiting {
		ended, err := r.tokenEnded(ctx, request)
		if err != nil || !ended {
			return ctrl.Result{RequeueAfter: life}, err
		}
	}
	return ctrl.Result{}, r.forget(ctx, request)
}

// refusedLife is how long a rejected request is kept, so that people can read the reason. Its agent
// re-creates it while it runs. A waiting request stays at least as long
// as its token.
func refusedLife(reason string) (time.Duration, bool) {
	switch reason {
	case registrationv1alpha1.RegistrationReasonUnproven,
		registrationv1alpha1.RegistrationReasonTokenUseLimitReached, registrationv1alpha1.PreviousTokenUseLimitReached, registrationv1alpha1.RegistrationReasonTokenInvalid:
		return time.Minute, true
	case registrationv1alpha1.RegistrationReasonInvalid, registrationv1alpha1.RegistrationReasonConflict:
		return time.Hour, true
	case registrationv1alpha1.RegistrationReasonWaiting:
		return 10 * time.Minute, true
	}
	return 0, false
}

// tokenEnded reports whether the token that a request names has expired or was deleted. Nobody can
// fetch the answer with it then.
func (r *GrantReconciler) tokenEnded(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (bool, error) {
	var token registrationv1alpha1.ClusterRegistrationToken
	name := request.Labels[registrationv1alpha1.LabelRegistrationToken]
	if name == "" {
		return true, nil
	}
	found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKey{Namespace: request.Namespace, Name: name}, &token, "reading ClusterRegistrationToken %q", name)
	return err == nil && (!found || lifeOf(&token, r.Clock.Now()).over()), err
}

func (r *GrantReconciler) forget(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) error {
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, request, client.Preconditions{UID: &request.UID})); err != nil {
		return fmt.Errorf("deleting ClusterRegistration %q: %w", request.Name, err)
	}
	return nil
}
