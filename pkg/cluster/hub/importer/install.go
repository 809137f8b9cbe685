// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"net"
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func (r *Reconciler) install(ctx context.Context, cluster *registrationv1alpha1.Cluster, config *rest.Config, values registrationv1alpha1.AgentValues) (*result, error) {
	objects, err := r.manifests(ctx, cluster, values)
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		return failed(ReasonChartFailed, "%v: the agent's chart does not accept this value of spec.privateRepoURL, spec.agentEnvVars, spec.agentTolerations, spec.agentAffinity, "+
			"spec.agentResources or spec.agentPullSecrets", err), nil
	}
	config.Timeout = memberTimeout
	member, err := client.New(config, client.Options{Scheme: r.Client.Scheme(), Mapper: Mapper()})
	if err != nil {
		return failed(ReasonKubeConfigInvalid, "the kubeconfig is invalid: %v", err), nil
	}
	for _, object := range objects {
		if err := Apply(ctx, member, object); err != nil {
			return explain(object, config.Host, err), nil
		}
	}
	if err := removeFormerBinding(ctx, member, agentNamespace(cluster)); err != nil {
		log.FromContext(ctx).Error(err, "Could not delete a former gateway's binding on a cluster", "server", config.Host)
	}
	log.FromContext(ctx).Info("Installed the agent on a cluster", "server", config.Host)
	return &result{reason: ReasonImported, message: "the agent is installed and registers by itself"}, nil
}

// Apply writes one object, and replaces a former one that cannot be updated. It skips a policy on a cluster that is too
// old for policies.
func Apply(ctx context.Context, member client.Client, object *unstructured.Unstructured) error {
	write := func() error {
		return member.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner(fieldOwner), client.ForceOwnership)
	}
	err := write()
	switch {
	case apierrors.IsNotFound(err) && object.GroupVersionKind().Group == admissionregistrationv1.GroupName:
		return nil
	case !apierrors.IsInvalid(err):
		return err
	}
	if replaced, failed := replace(ctx, member, object); failed != nil || !replaced {
		return errors.Join(err, failed)
	}
	return write()
}

// Mapper knows the kinds in the chart, so that no discovery is needed.
func Mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for scope, kinds := range map[meta.RESTScope][]schema.GroupVersionKind{
		meta.RESTScopeRoot: {
			corev1.SchemeGroupVersion.WithKind("Namespace"),
			rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
			admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
			admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		},
		meta.RESTScopeNamespace: {
			corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
			corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("Service"),
			rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
			appsv1.SchemeGroupVersion.WithKind("Deployment"), policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
			networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		},
	} {
		for _, kind := range kinds {
			m.Add(kind, scope)
		}
	}
	return m
}

// explain returns why the agent could not be installed.
func explain(obj client.Object, server string, err error) *result {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return failed(ReasonUnreachable, "the hub cannot reach %s (%v): if the cluster is private, let its agent register by itself with a "+
			"ClusterRegistrationToken and this Cluster's spec.clientID; otherwise check the server in the kubeconfig and the network", server, cause(err))
	}
	if apierrors.IsUnauthorized(err) {
		return failed(ReasonKubeConfigRefused, "%s does not accept the credential in the kubeconfig: it is wrong or has expired; put a new one into the Secret", server)
	}
	return failed(ReasonApplyFailed, "%s refuses %s %q: %v", server, obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), err)
}

// cause removes method, path and address, which the message already has.
func cause(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	var network *net.OpError
	if errors.As(err, &network) {
		err = network.Err
	}
	return err
}
