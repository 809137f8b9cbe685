// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"

	"github.com/argoproj/argo-cd/v3/applicationset/controllers/template"
	"github.com/argoproj/argo-cd/v3/applicationset/generators"
	"github.com/argoproj/argo-cd/v3/applicationset/utils"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/sirupsen/logrus"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// generate reads an ApplicationSet from stdin, and prints the Applications that Argo CD's
// controller creates from it as a JSON list, with Argo CD's own generator clusterDecisionResource
// and its templates.
func generate(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("argocd generate", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "Kubeconfig of the cluster in which Argo CD would run, as its controller of ApplicationSets.")
	namespace := flags.String("argocd-namespace", "argocd", "Namespace with Argo CD's clusters.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the ApplicationSet: %w", err)
	}
	var set v1alpha1.ApplicationSet
	if err := yaml.UnmarshalStrict(text, &set); err != nil {
		return fmt.Errorf("reading the ApplicationSet: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a dynamic client: %w", err)
	}
	known := map[string]generators.Generator{"ClusterDecisionResource": generators.NewDuckTypeGenerator(ctx, dynamicClient, client, *namespace)}
	applications, _, err := template.GenerateApplications(logrus.NewEntry(logrus.StandardLogger()), set, known, &utils.Render{}, nil)
	if err != nil {
		return fmt.Errorf("generating Applications: %w", err)
	}
	if err := json.NewEncoder(out).Encode(applications); err != nil {
		return fmt.Errorf("printing Applications: %w", err)
	}
	return nil
}
