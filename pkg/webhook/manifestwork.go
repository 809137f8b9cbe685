// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/webhook/author"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

// Names of the configurations for ManifestWorks and their sets. The first one's, its path
// and its errors, which are 400, are those that Open Cluster Management's users and tests
// know; it has rules for the other kind too, and installs them nowhere.
const (
	ManifestWorkConfiguration = "manifestworkvalidators.admission.work.open-cluster-management.io"
	ReplicaSetConfiguration   = "manifestworkreplicasetvalidators.admission.work.open-cluster-management.io"

	pathManifestWork = "/validate-work-open-cluster-management-io-v1-manifestwork"
	pathReplicaSet   = "/validate-work-open-cluster-management-io-v1alpha1-manifestworkreplicaset"
)

// RegisterWorks adds the handlers for ManifestWorks and their sets to the manager's webhook
// server. Limit is how many bytes the manifests of one may have.
func RegisterWorks(mgr ctrl.Manager, limit int, strictness Strictness) {
	hub := Hub{Scheme: mgr.GetScheme(), Reviews: mgr.GetClient(), Mapper: mgr.GetRESTMapper(), Strictness: strictness}
	for path, handler := range WorkHandlers(hub, limit) {
		mgr.GetWebhookServer().Register(path, handler)
	}
}

// WorkHandlers returns the handlers for ManifestWorks and their sets by their paths. They
// need no server to be called.
func WorkHandlers(hub Hub, limit int) map[string]http.Handler {
	authors := authors{reviews: hub.Reviews}
	works := worksValidator{limit: limit, authors: authors}
	sets := setsValidator{limit: limit, authors: authors, resources: resourcesOf(hub.Mapper), trusting: hub.TrustAuthors}
	return map[string]http.Handler{
		pathManifestWork: http.MaxBytesHandler(admission.WithValidator[*workv1.ManifestWork](hub.Scheme, works), maxReviewBytes),
		pathReplicaSet:   http.MaxBytesHandler(admission.WithValidator[*workv1alpha1.ManifestWorkReplicaSet](hub.Scheme, sets), maxReviewBytes),
	}
}

// worksValidator serves the rules of ManifestWorks.
type worksValidator struct {
	limit   int
	authors authors
}

// ValidateCreate returns 400 with the first error of a new ManifestWork.
func (v worksValidator) ValidateCreate(ctx context.Context, work *workv1.ManifestWork) (admission.Warnings, error) {
	return nil, v.refuse(ctx, nil, work)
}

// ValidateUpdate returns 400 with the first error of an update. An unchanged executor is not
// authorized again.
func (v worksValidator) ValidateUpdate(ctx context.Context, older, newer *workv1.ManifestWork) (admission.Warnings, error) {
	if newer.DeletionTimestamp != nil {
		return nil, nil
	}
	return nil, v.refuse(ctx, older, newer)
}

// ValidateDelete allows.
func (v worksValidator) ValidateDelete(context.Context, *workv1.ManifestWork) (admission.Warnings, error) {
	return nil, nil
}

func (v worksValidator) refuse(ctx context.Context, older, newer *workv1.ManifestWork) error {
	if len(newer.Spec.Workload.Manifests) == 0 {
		return apierrors.NewBadRequest("manifests should not be empty")
	}
	if err := validation.ValidateManifests(newer.Spec.Workload.Manifests, v.limit); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if newer.Spec.Executor == nil || older != nil && equality.Semantic.DeepEqual(older.Spec.Executor, newer.Spec.Executor) {
		return nil
	}
	account := newer.Spec.Executor.Subject.ServiceAccount
	if account == nil {
		return apierrors.NewBadRequest("executor service account can not be nil")
	}
	checker, err := v.authors.checker(ctx)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	may, err := checker.May(ctx, author.Question{Any: []author.Access{executing(newer.Namespace, account)}})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !may[0] {
		return apierrors.NewBadRequest(fmt.Sprintf("user %s cannot manipulate the Manifestwork with executor %s/%s in namespace %s",
			checker.User(), account.Namespace, account.Name, newer.Namespace))
	}
	return nil
}

// executing is the right to have ManifestWorks of a namespace, or of all, brought in the
// name of an account.
func executing(namespace string, account *workv1.ManifestWorkSubjectServiceAccount) author.Access {
	return author.Access{
		Verb: author.ExecuteVerb, Group: workv1.GroupName, Resource: "manifestworks", Namespace: namespace,
		Name: fmt.Sprintf("system:serviceaccount:%s:%s", account.Namespace, account.Name),
	}
}

// WorkConfigurations returns the webhook configurations for ManifestWorks and their sets.
// Only changes of a spec are reviewed: agents write finalizers also while no gateway responds. The
// gateway reviewed a set before it creates ManifestWorks from it. Users with the right to bypass a
// configuration, by its name, do so with the annotation.
func WorkConfigurations(endpoint Endpoint) []client.Object {
	fromSet := fmt.Sprintf("!(has(object.metadata.labels) && '%s' in object.metadata.labels && authorizer.group('%s').resource('%s').check('%s').allowed())",
		workv1alpha1.ReplicaSetLabel, BypassGroup, BypassDeliveries, BypassVerb)
	return []client.Object{
		workConfiguration(endpoint, ManifestWorkConfiguration, pathManifestWork, workv1.GroupVersion, "manifestworks",
			admissionregistrationv1.MatchCondition{Name: "not-of-a-set", Expression: fromSet}),
		workConfiguration(endpoint, ReplicaSetConfiguration, pathReplicaSet, workv1alpha1.GroupVersion, "manifestworkreplicasets"),
	}
}

func workConfiguration(endpoint Endpoint, name, path string, version schema.GroupVersion, resource string, more ...admissionregistrationv1.MatchCondition) client.Object {
	changed := admissionregistrationv1.MatchCondition{
		Name: "changes-the-spec", Expression: "request.operation == 'CREATE' || object.metadata.generation != oldObject.metadata.generation",
	}
	return ocmConfiguration(endpoint, name, path, version, resource,
		append([]admissionregistrationv1.MatchCondition{notDeleted(), changed, notBypassed(name)}, more...)...)
}

// patience is how many seconds Open Cluster Management's configurations wait.
const patience = 10

// ocmConfiguration matches upstream's configurations: it has one kind, and fails while no gateway
// responds.
func ocmConfiguration(endpoint Endpoint, name, path string, version schema.GroupVersion, resource string, conditions ...admissionregistrationv1.MatchCondition) client.Object {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    name,
			ClientConfig:            endpoint.ClientConfig(path),
			Rules:                   ocmRules(version, resource),
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
			MatchConditions:         conditions,
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](patience),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func ocmRules(version schema.GroupVersion, resource string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{version.Group}, APIVersions: []string{version.Version},
			Resources: []string{resource}, Scope: ptr.To(admissionregistrationv1.AllScopes),
		},
	}}
}
