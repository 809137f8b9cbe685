// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// tokenTimeout limits how long the gateway may take to issue a token.
const tokenTimeout = 30 * time.Second

// defaultRegistrationNamespace is the default of --registration-namespace.
const defaultRegistrationNamespace = "clusters"

// registrationNamespaceUsage is the help of --registration-namespace.
const registrationNamespaceUsage = "Namespace on the hub where clusters register. Created if it does not exist."

type tokenOptions struct {
	*session
	Registration string
	TTL          time.Duration
	Uses         int
	For          string
	Approve      bool
	Values       bool
}

func newTokenCommand(s *session) *cobra.Command {
	o := &tokenOptions{session: s}
	command := &cobra.Command{
		Use:   "token [NAME]",
		Short: "Create a registration token",
		Long: `Create a ClusterRegistrationToken and print the commands that register a cluster with it.
If NAME is not set, a name is generated. By default the token is valid for one cluster and
one day. With --values, the command prints the values of the agent's chart, which contain
the token.`,
		Example: `  kubectl fleetgate token
  kubectl fleetgate token edge --uses=10 --ttl=1h --values`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return o.run(command.Context(), name)
		},
	}
	command.Flags().StringVar(&o.Registration, "registration-namespace", defaultRegistrationNamespace, registrationNamespaceUsage)
	command.Flags().DurationVar(&o.TTL, "ttl", 24*time.Hour, "Lifetime of the token.")
	command.Flags().IntVar(&o.Uses, "uses", 1, "How many clusters can register with the token.")
	command.Flags().StringVar(&o.For, "for", "", "Restrict the token to the Cluster with this name.")
	command.Flags().BoolVar(&o.Approve, "approve", true, "Approve members that register with the token. If false, each needs the command approve.")
	command.Flags().BoolVar(&o.Values, "values", false, "Print the values of the agent's chart instead of the command.")
	return command
}

func (o *tokenOptions) run(ctx context.Context, name string) error {
	if o.TTL <= 0 || o.Uses <= 0 || o.Uses > registrationv1alpha1.MaxUses {
		return fmt.Errorf("--ttl must be positive, and --uses from 1 to %d", registrationv1alpha1.MaxUses)
	}
	h, err := o.hub()
	if err != nil {
		return err
	}
	token, values, err := o.make(ctx, h, name)
	if err != nil {
		return err
	}
	if o.Values {
		_, err := o.Out.Write(values)
		return err
	}
	o.printf(`token %[1]s created in namespace %[2]s

To join a cluster for which your kubeconfig has a context:

  kubectl fleetgate join NAME --member-context CONTEXT

To join a cluster with Helm:

  kubectl --namespace=%[2]s get secret %[1]s -o 'jsonpath={.data.values}' | base64 --decode > values.yaml
  helm install fleet-agent charts/agent --namespace fleet-system --create-namespace --wait --values values.yaml
`, token.Name, token.Namespace)
	return nil
}

// make creates a token and waits for its values.
func (o *tokenOptions) make(ctx context.Context, h *overview.Hub, name string) (*registrationv1alpha1.ClusterRegistrationToken, []byte, error) {
	if err := o.ensureNamespace(ctx, h); err != nil {
		return nil, nil, err
	}
	approval := registrationv1alpha1.ApprovalManual
	if o.Approve {
		approval = registrationv1alpha1.ApprovalAuto
	}
	token := &registrationv1alpha1.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Registration, Name: name,
			Annotations: map[string]string{
				registrationv1alpha1.AnnotationApproval: approval, registrationv1alpha1.AnnotationUses: strconv.Itoa(o.Uses),
			},
		},
		Spec: registrationv1alpha1.ClusterRegistrationTokenSpec{TTL: &metav1.Duration{Duration: o.TTL}},
	}
	if name == "" {
		token.GenerateName = "token-"
	}
	if o.For != "" {
		token.Annotations[registrationv1alpha1.AnnotationForCluster] = o.For
	}
	if err := h.Create(ctx, token); err != nil {
		return nil, nil, fmt.Errorf("creating a registration token: %w", err)
	}
	values, err := o.valuesOf(ctx, h, token)
	return token, values, err
}

// ensureNamespace creates the registration namespace. Without permission to create namespaces, the
// user can still create tokens in an existing one.
func (o *tokenOptions) ensureNamespace(ctx context.Context, h *overview.Hub) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Registration}}
	if err := h.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("creating namespace %q: %w", o.Registration, err)
	}
	return nil
}

func (o *tokenOptions) valuesOf(ctx context.Context, h *overview.Hub, token *registrationv1alpha1.ClusterRegistrationToken) (values []byte, err error) {
	key := client.ObjectKeyFromObject(token)
	err = o.await(ctx, tokenTimeout, func(ctx context.Context) (bool, string, error) {
		if err := h.Get(ctx, key, token); err != nil {
			return false, "", fmt.Errorf("reading token %q: %w", key.Name, err)
		}
		ready := meta.FindStatusCondition(token.Status.Conditions, registrationv1alpha1.TokenConditionReady)
		switch {
		case ready == nil:
			return false, fmt.Sprintf("no gateway has processed token %q: check that a gateway is running", key.Name), nil
		case ready.Status != metav1.ConditionTrue && ready.Reason != "":
			return false, fmt.Sprintf("token %q is not ready: %s", key.Name, ready.Message), nil
		}
		secret := &corev1.Secret{}
		if err := h.Get(ctx, key, secret); err != nil {
			return false, "waiting for the Secret with the values", client.IgnoreNotFound(err)
		}
		values = secret.Data[registrationv1alpha1.RegistrationValuesKey]
		return len(values) > 0, "waiting for the Secret with the values", nil
	})
	return values, err
}
