// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

const (
	// firstRetry and lastRetry bound the retry delay. The shortest token, of ten minutes, leaves
	// two minutes for retries.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// firstErrorRetry is the first delay after an error that cannot be reported in a status.
	firstErrorRetry = 200 * time.Millisecond
	// recheckInterval is the longest interval between checks: clocks can jump, and members can change
	// their signing keys.
	recheckInterval = time.Hour
	// retryInterval is the interval of checks whether a user has solved a problem.
	retryInterval = time.Minute
)

// Reconciler refreshes the tokens of one member's accounts.
type Reconciler struct {
	// Hub accesses the member's namespace on the hub. It must not read Secrets from a cache,
	// because the cache lacks a Secret that lost its label.
	Hub client.Client
	// Live reads ManagedServiceAccounts from the hub without a cache.
	Live client.Reader
	// Member accesses ServiceAccounts on the member without a cache.
	Member client.Client
	// MemberCache watches the managed ServiceAccounts on the member, and should contain nothing
	// else.
	MemberCache cache.Cache
	// HubNamespace is the member's namespace on the hub.
	HubNamespace string
	// AccountNamespace is the namespace of the accounts on the member, which MemberCache watches.
	AccountNamespace string
	// AgentNamespace is the agent's namespace on the member. It distinguishes the accounts of
	// agents for different hubs.
	AgentNamespace string
	// Adopt records accounts that another product's agent holds for ManagedServiceAccounts, and
	// takes them over when that agent is gone.
	Adopt bool
	// MemberCA returns the PEM certificates that verify the member's API server.
	MemberCA func() ([]byte, error)
	Clock    clock.PassiveClock
	// Epochs detect whether a restored hub lost a ManagedServiceAccount. If nil, accounts are never
	// retained.
	Epochs *retention.Epochs
	// Holds counts the retained accounts. It must be set if Epochs is.
	Holds *retention.Tracker
	// Recorder writes events on ManagedServiceAccounts.
	Recorder events.EventRecorder
}

// SetupWithManager watches ManagedServiceAccounts and their Secrets on the hub, and the accounts on
// the member, to restore deleted or altered ones. The cache has only the metadata of Secrets.
func (r *Reconciler) SetupWithManager(hub ctrl.Manager) error {
	r.Epochs.RegisterLargest(r.largestEpoch)
	byName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: r.HubNamespace, Name: object.GetName()}}}
	})
	accounts := source.Kind[client.Object](r.MemberCache, &corev1.ServiceAccount{}, byName, managed())
	return ctrl.NewControllerManagedBy(hub).
		Named("managedserviceaccount.rotator").
		For(&authenticationv1beta1.ManagedServiceAccount{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Secret{}, byName, builder.WithPredicates(managed())).
		WatchesRawSource(accounts).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstErrorRetry, lastRetry),
		}).
		Complete(r)
}

// managed selects objects that have, or had until now, the label.
func managed() predicate.Predicate {
	carries := predicate.NewPredicateFuncs(isManaged)
	carries.UpdateFunc = func(e event.UpdateEvent) bool { return isManaged(e.ObjectOld) || isManaged(e.ObjectNew) }
	return carries
}

func isManaged(object client.Object) bool {
	return object.GetLabels()[authenticationv1beta1.LabelManagedServiceAccount] == authenticationv1beta1.LabelManagedServiceAccountValue
}

// A mistake is a failure that a user has to solve; retries do not help. It becomes a condition with
// the remedy, and no error of the reconcile.
type mistake string

// Error is the condition's message.
func (m mistake) Error() string { return string(m) }

// Reconcile updates one account and its token, and requeues it for the next refresh.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	if ctx.Err() != nil {
		//lint:ignore nilerr The agent is stopping; the error is a consequence.
		return ctrl.Result{}, nil
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var account authenticationv1beta1.ManagedServiceAccount
	err := r.Hub.Get(ctx, request.NamespacedName, &account)
	switch {
	case apierrors.IsNotFound(err):
		return r.vanished(ctx, request.NamespacedName)
	case err == nil && !account.DeletionTimestamp.IsZero():
		return ctrl.Result{}, r.removeAccount(ctx, request.Name)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading ManagedServiceAccount %s: %w", request.Name, err)
	}

	before := account.DeepCopy()
	due, failure := r.reconcileToken(ctx, &account)
	if apierrors.IsConflict(failure) || apierrors.IsAlreadyExists(failure) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	next, news := min(max(due.Sub(r.Clock.Now()), time.Second), recheckInterval), false
	if failure != nil {
		var failing time.Duration
		failing, news = reportFailure(&account, failure, r.Clock.Now())
		next = tryAgain(failure, failing)
	}
	switch err := r.writeStatus(ctx, before, &account); {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case err != nil:
		return ctrl.Result{}, errors.Join(failure, err)
	}
	if news {
		r.warn(ctx, &account, messageOf(failure))
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// vanished deletes the account of a ManagedServiceAccount that no longer exists, unless it is
// retained. That invalidates all tokens, so the hub is asked without a cache.
func (r *Reconciler) vanished(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	err := r.Live.Get(ctx, key, &authenticationv1beta1.ManagedServiceAccount{})
	if err == nil {
		return ctrl.Result{}, nil // the cache will enqueue it
	}
	if !reconcileutil.IsGone(err) {
		return ctrl.Result{}, fmt.Errorf("asking the hub whether ManagedServiceAccount %s still exists: %w", key.Name, err)
	}
	retained, err := r.holdAccount(ctx, key.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if retained {
		return ctrl.Result{RequeueAfter: retention.Recheck}, nil
	}
	return ctrl.Result{}, r.removeAccount(ctx, key.Name)
}

// warn runs after the status was written, so that it reports only changes.
func (r *Reconciler) warn(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, message string) {
	log.FromContext(ctx).Info("Could not refresh the token: "+message, "account", account.Name)
	r.Recorder.Eventf(account, nil, corev1.EventTypeWarning, authenticationv1beta1.ReasonTokenReportFailed, "RefreshToken", "%s", untrusted.Truncate(message, maxNoteBytes))
}

func tryAgain(failure error, failing time.Duration) time.Duration {
	var needsHelp mistake
	if errors.As(failure, &needsHelp) {
		return retryInterval
	}
	return retryAfter(failing)
}

// reconcileToken updates account, Secret and status, and returns until when they are valid.
func (r *Reconciler) reconcileToken(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) (due time.Time, err error) {
	onMember, err := r.ensureAccount(ctx, account)
	if err != nil {
		return time.Time{}, err
	}
	ca, err := r.MemberCA()
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the CA of the member's API server: %w", err)
	}
	secret, err := r.readSecret(ctx, account)
	if err != nil {
		return time.Time{}, err
	}
	reportSecret(account, secret, r.Clock.Now())

	found, ours := inspect(secret, account, onMember, ca)
	if ours {
		if found.works, err = r.accepted(ctx, secret, onMember); err != nil {
			return time.Time{}, err
		}
	}
	next, due := decide(account, onMember.UID, found, r.Clock.Now())
	switch next {
	case spent:
		return time.Time{}, mistake("The one token was issued and is gone, and spec.rotation.enabled is false: set it to true, or re-create the ManagedServiceAccount")
	case restore:
		err = r.storeToken(ctx, account, secret, string(secret.Data[authenticationv1beta1.SecretKeyToken]), ca)
	case request:
		if err := r.isNewest(ctx, account); err != nil {
			return time.Time{}, err
		}
		return r.renew(ctx, account, onMember, secret, ca)
	}
	if err != nil {
		return time.Time{}, err
	}
	reportToken(account, found.claims, found.claims.Issued, r.Clock.Now())
	return due, nil
}

// isNewest returns a conflict if the cache has an old version of the ManagedServiceAccount. Its
// status has the time of the last refresh, which nothing else shows if the clocks of member and
// agent differ.
func (r *Reconciler) isNewest(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) error {
	var newest authenticationv1beta1.ManagedServiceAccount
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(account), &newest); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ManagedServiceAccount %s on the hub: %w", account.Name, err)
	}
	if newest.ResourceVersion == account.ResourceVersion {
		return nil
	}
	resource := authenticationv1beta1.GroupVersion.WithResource("managedserviceaccounts").GroupResource()
	return apierrors.NewConflict(resource, account.Name, errors.New("the cache is behind"))
}

// renew stores a new token. If it fails, the Secret is unchanged, and the older token serves until
// it expires.
func (r *Reconciler) renew(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, onMember *corev1.ServiceAccount,
	secret *corev1.Secret, ca []byte) (due time.Time, err error) {
	claims, err := r.refresh(ctx, account, onMember, secret, ca)
	if err != nil {
		return time.Time{}, err
	}
	now := r.Clock.Now()
	reportSecret(account, secret, now)
	reportToken(account, claims, now, now)
	_, due = decide(account, onMember.UID, present{claims: claims, works: true, whole: true}, now)
	return due, nil
}
