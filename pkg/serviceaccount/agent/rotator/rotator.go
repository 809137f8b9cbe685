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
	// firstRetry and lastRetry bound the time between two tries of what failed: a
	// token of ten minutes leaves two of them to mend it.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// firstUntold is for what fails so early that nobody can be told.
	firstUntold = 200 * time.Millisecond
	// lookAgain is how long an account is left alone at most: clocks jump, and
	// members change the keys that their tokens are signed with.
	lookAgain = time.Hour
	// askAgain is how often is looked whether a mistake was mended.
	askAgain = time.Minute
)

// Reconciler keeps the tokens of one member's accounts fresh.
type Reconciler struct {
	// Hub reads and writes the member's namespace on the hub. It must not read
	// Secrets from a cache: one that lost its label is still to be seen.
	Hub client.Client
	// Live reads ManagedServiceAccounts from the hub itself.
	Live client.Reader
	// Member reads and writes service accounts on the member, without a cache.
	Member client.Client
	// MemberCache watches the managed service accounts on the member. It should
	// hold nothing else.
	MemberCache cache.Cache
	// HubNamespace is the member's namespace on the hub.
	HubNamespace string
	// AccountNamespace is the namespace on the member in which accounts are made.
	// MemberCache watches accounts there.
	AccountNamespace string
	// AgentNamespace is the agent's own on the member. It tells the accounts of
	// this agent from those of an agent for another hub.
	AgentNamespace string
	// Adopt has the agent note which accounts another product's agent holds for
	// ManagedServiceAccounts, and take them over when that agent is gone.
	Adopt bool
	// MemberCA returns the PEM certificates that verify the member's API server.
	MemberCA func() ([]byte, error)
	Clock    clock.PassiveClock
	// Epochs tell whether the hub went back behind a ManagedServiceAccount that it has no
	// more. Nil: nobody counts them, and its account is removed.
	Epochs *retention.Epochs
	// Holds counts the accounts that stay since the hub went back. It is there if Epochs are.
	Holds *retention.Book
	// Recorder writes events on ManagedServiceAccounts.
	Recorder events.EventRecorder
}

// SetupWithManager watches ManagedServiceAccounts and their Secrets on the hub,
// and the accounts on the member: what was deleted or altered is put back. Of
// Secrets it holds the metadata only.
func (r *Reconciler) SetupWithManager(hub ctrl.Manager) error {
	r.Epochs.Brought(r.largestEpoch)
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
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstUntold, lastRetry),
		}).
		Complete(r)
}

// managed lets pass what carries the label, or carried it until now.
func managed() predicate.Predicate {
	carries := predicate.NewPredicateFuncs(isManaged)
	carries.UpdateFunc = func(e event.UpdateEvent) bool { return isManaged(e.ObjectOld) || isManaged(e.ObjectNew) }
	return carries
}

func isManaged(object client.Object) bool {
	return object.GetLabels()[authenticationv1beta1.LabelManagedServiceAccount] == authenticationv1beta1.LabelManagedServiceAccountValue
}

// A mistake is a failure that needs somebody to act: trying again does not mend
// it. It becomes a condition, which names the remedy, and no error.
type mistake string

// Error is the condition's message.
func (m mistake) Error() string { return string(m) }

// Reconcile brings one account and its token up to date, and comes back when the
// token is due.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	if ctx.Err() != nil {
		//lint:ignore nilerr The agent ends here, which is no failure.
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
	next, news := min(max(due.Sub(r.Clock.Now()), time.Second), lookAgain), false
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

// vanished removes the account of a ManagedServiceAccount that the hub has no more, unless it
// is held. All tokens die with it, so the hub itself is asked: a cache may be behind.
func (r *Reconciler) vanished(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	err := r.Live.Get(ctx, key, &authenticationv1beta1.ManagedServiceAccount{})
	if err == nil {
		return ctrl.Result{}, nil // The cache brings it here.
	}
	if !reconcileutil.IsGone(err) {
		return ctrl.Result{}, fmt.Errorf("asking the hub whether ManagedServiceAccount %s still exists: %w", key.Name, err)
	}
	held, err := r.holdAccount(ctx, key.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if held {
		return ctrl.Result{RequeueAfter: retention.Recheck}, nil
	}
	return ctrl.Result{}, r.removeAccount(ctx, key.Name)
}

// warn comes after the status was written: what the status says already is no news.
func (r *Reconciler) warn(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, message string) {
	log.FromContext(ctx).Info("Could not keep the token fresh: "+message, "account", account.Name)
	r.Recorder.Eventf(account, nil, corev1.EventTypeWarning, authenticationv1beta1.ReasonTokenReportFailed, "RefreshToken", "%s", untrusted.Truncate(message, maxNoteBytes))
}

func tryAgain(failure error, failing time.Duration) time.Duration {
	var needsHelp mistake
	if errors.As(failure, &needsHelp) {
		return askAgain
	}
	return retryAfter(failing)
}

// reconcileToken makes account and Secret right, fills in the status, and
// returns until when that holds.
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
		return time.Time{}, mistake("The one token was issued and is gone, and spec.rotation.enabled is false: set it to true, or make the ManagedServiceAccount anew")
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

// isNewest returns a conflict for an account that the cache has of old: when its token
// was refreshed last is in the status, and where the member's clock differs from
// ours nothing else tells.
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

// renew puts a new token in place. If it fails, the Secret is as it was: an older
// token serves while it lives.
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
